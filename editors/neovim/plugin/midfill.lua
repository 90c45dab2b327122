-- Only the command: nothing is started before |midfill.setup()|.
if vim.g.loaded_midfill then
  return
end
vim.g.loaded_midfill = true

vim.api.nvim_create_user_command('Midfill', function(command)
  require('midfill').command(command.args)
end, {
  nargs = '?',
  desc = 'midfill: suggestions at the cursor',
  complete = function(begun)
    return vim.tbl_filter(function(name)
      return vim.startswith(name, begun)
    end, require('midfill').commands())
  end,
})
