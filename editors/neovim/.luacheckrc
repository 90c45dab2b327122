std = 'luajit'
globals = { 'vim' } -- its fields are set, too: vim.bo, vim.g
max_line_length = 120
