"""The local model's own process. Started by `backends._llama_process`; imports nothing of ours outside this package."""
