-- What lazy.nvim is to know when a user names this folder and nothing more.
return { 'midfill', opts = {} }
