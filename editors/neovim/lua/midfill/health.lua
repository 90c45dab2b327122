--- `:checkhealth midfill`
local M = {}

local config = require('midfill.config')
local server = require('midfill.server')

local function check_server()
  local cmd, tried = server.command()
  if not cmd or vim.fn.executable(cmd[1]) == 0 then
    local where = cmd and cmd[1] or table.concat(tried, ', ')
    vim.health.error('the server is not installed; looked for ' .. where, {
      server.installation(),
      "or name it: require('midfill').setup({ cmd = { '/path/to/midfill' } })",
    })
    return
  end
  if #cmd > 1 then -- arguments of the user's own
    vim.health.ok('server: ' .. table.concat(cmd, ' '))
    return
  end
  local done = vim.system({ cmd[1], '--version' }, { text = true, timeout = 20000 }):wait()
  if done.code == 0 then
    vim.health.ok(('server: %s (%s)'):format(vim.trim(done.stdout or ''), cmd[1]))
  else
    vim.health.error(('%s --version failed: %s'):format(cmd[1], vim.trim(done.stderr or '')))
  end
end

local function check_client()
  local client = server.client()
  if not client then
    local call = vim.fn.exists('#midfill#BufEnter') == 1 and 'a buffer with a file name starts it'
      or "require('midfill').setup() was not called"
    vim.health.warn('the server is not running; ' .. call)
    return
  end
  local buffers = #vim.tbl_keys(client.attached_buffers)
  vim.health.ok(('running as client %d, %d buffers, columns in %s'):format(client.id, buffers, client.offset_encoding))
  local status, detail = require('midfill').status()
  local line = 'status: ' .. status .. (detail and (', ' .. detail) or '')
  if status == 'error' then
    vim.health.warn(line, 'run: midfill doctor')
  else
    vim.health.info(line)
  end
end

local function check_keys()
  for name, lhs in pairs(config.options.keys) do
    if lhs then
      local mapped = vim.fn.maparg(lhs, 'i', false, true)
      if not vim.startswith(mapped.desc or '', 'midfill: ') then
        vim.health.warn(('key %s (%s) is mapped to something else'):format(lhs, name))
      end
    end
  end
end

function M.check()
  vim.health.start('midfill')
  if vim.fn.has('nvim-0.10') == 0 then
    vim.health.error('Neovim 0.10 or newer is needed')
    return
  end
  vim.health.ok(
    vim.lsp.inline_completion and 'suggestions are shown by vim.lsp.inline_completion'
      or 'suggestions are shown as ghost text of this plugin (Neovim 0.12 has it built in)'
  )
  check_server()
  check_client()
  check_keys()
end

return M
