"""Files that editors need, one folder each. Imports nothing of ours."""
