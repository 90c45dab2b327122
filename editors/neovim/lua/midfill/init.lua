--- The plugin's functions: what is mapped, shown in the statusline and called by `:Midfill`.
local M = {}

local api = vim.api
local config = require('midfill.config')
local server = require('midfill.server')

-- Who shows suggestions: Neovim itself since 0.12.
local builtin = vim.lsp.inline_completion ~= nil
local display = require(builtin and 'midfill.builtin' or 'midfill.own')

local SET_UP = 'midfill'

--- Feeds keys so that the change is a step of its own for |undo|: the one before it and the one after it end there.
--- Works in mappings with and without `expr`.
---@param call string
---@return boolean
local function as_step(call)
  if not display.visible() then
    return false
  end
  local keys = ("<C-g>u<Cmd>lua require('midfill')._display.%s<CR><C-g>u"):format(call)
  api.nvim_feedkeys(vim.keycode(keys), 'in', false)
  return true
end

M._display = display

--- Each returns false if nothing is shown, so that a mapping can do something else then.

---@return boolean
function M.accept()
  return as_step([[accept('all')]])
end

---@return boolean
function M.accept_word()
  return as_step([[accept('word')]])
end

---@return boolean
function M.accept_line()
  return as_step([[accept('line')]])
end

---@param call fun()
---@return boolean
local function if_shown(call)
  if not display.visible() then
    return false
  end
  vim.schedule(call)
  return true
end

--- Ask for suggestions now, without waiting for a pause.
---@return boolean
function M.trigger()
  if server.state.off or not server.ready(api.nvim_get_current_buf()) then
    return false
  end
  vim.schedule(display.trigger)
  return true
end

--- The next suggestion for this place; where none is shown they are asked for.
---@return boolean
function M.next()
  return if_shown(function()
    display.cycle(1)
  end) or M.trigger()
end

---@return boolean
function M.previous()
  return if_shown(function()
    display.cycle(-1)
  end) or M.trigger()
end

---@return boolean
function M.dismiss()
  return if_shown(display.dismiss)
end

---@alias midfill.Status 'ready'|'thinking'|'off'|'error'|'stopped'

--- What the plugin is doing, and the reason if it is an error.
---@return midfill.Status
---@return string? detail
function M.status()
  local client = server.client()
  if server.state.off then
    return 'off'
  elseif not client then
    return server.state.problem and 'error' or 'stopped', server.state.problem
  elseif not client.initialized then
    return 'thinking', 'starting'
  elseif server.state.busy then
    return 'thinking', server.state.busy
  elseif display.waiting() then
    return 'thinking'
  elseif server.state.problem then
    return 'error', server.state.problem
  end
  return 'ready'
end

--- For the statusline: `%{v:lua.require'midfill'.statusline()}`.
---@return string
function M.statusline()
  local status, detail = M.status()
  local marks = { ready = '', thinking = ' …', off = ' off', error = ' !', stopped = ' -' }
  return 'midfill' .. marks[status] .. (status == 'thinking' and detail and (' ' .. detail) or '')
end

---@param on boolean
function M.enable(on)
  server.state.off = not on
  display.leave()
  server.execute('midfill.toggle', { on })
  local client = server.client()
  for bufnr in pairs(client and client.attached_buffers or {}) do
    if on and client then
      display.attach(bufnr, client)
    else
      display.detach(bufnr)
    end
  end
  server.changed()
end

function M.toggle()
  M.enable(server.state.off)
end

--- Show what the server answers to a command in a scratch window.
---@param name string
---@param arguments any[]
local function show(name, arguments)
  local asked = server.execute(name, arguments, function(err, result)
    local text = err and err.message or vim.inspect(result)
    vim.cmd.new()
    vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile, vim.bo.filetype = 'nofile', 'wipe', false, 'lua'
    api.nvim_buf_set_lines(0, 0, -1, false, vim.split(text, '\n', { plain = true }))
    vim.bo.modifiable = false
  end)
  if not asked then
    server.tell('midfill: the server is not running; see :checkhealth midfill', vim.log.levels.WARN)
  end
end

---@type table<string, fun()>
local commands = {
  enable = function()
    M.enable(true)
  end,
  disable = function()
    M.enable(false)
  end,
  toggle = M.toggle,
  restart = function()
    server.stop(true)
  end,
  stop = function()
    server.stop(false)
  end,
  status = function()
    show('midfill.status', {})
  end,
  explain = function()
    show('midfill.explain', { vim.uri_from_bufnr(0) })
  end,
  health = function()
    vim.cmd.checkhealth('midfill')
  end,
}

---@return string[]
function M.commands()
  local names = vim.tbl_keys(commands)
  table.sort(names)
  return names
end

---@param name string
function M.command(name)
  local run = commands[name == '' and 'status' or name]
  if run then
    run()
  else
    local problem = ('midfill: no command %s; there are %s'):format(name, table.concat(M.commands(), ', '))
    api.nvim_echo({ { problem } }, true, {})
  end
end

---@param group integer
local function on_progress(group)
  api.nvim_create_autocmd('LspProgress', {
    group = group,
    callback = function(event)
      local value = vim.tbl_get(event.data, 'params', 'value') or vim.tbl_get(event.data, 'result', 'value')
      if event.data.client_id == server.state.client_id and type(value) == 'table' then
        if value.kind == 'begin' then
          server.state.busy = (value.title or ''):gsub('^midfill: ', '')
        elseif value.kind == 'end' then
          server.state.busy = nil
        end
        server.changed()
      end
    end,
  })
end

--- Start midfill. Call it once, with the options that differ from the defaults.
---@param options? table see |midfill-options|
function M.setup(options)
  if vim.fn.has('nvim-0.10') == 0 then
    error('midfill: Neovim 0.10 or newer is needed', 0)
  end
  config.set(options)
  require('midfill.ghost').highlight()
  require('midfill.keys').map(config.options.keys, M)
  server.on_attach = function(bufnr, client)
    if not server.state.off then
      display.attach(bufnr, client)
    end
    if bufnr == api.nvim_get_current_buf() then
      server.focused(bufnr)
    end
  end
  local group = api.nvim_create_augroup(SET_UP, { clear = true })
  api.nvim_create_autocmd({ 'BufEnter', 'FileType', 'BufWritePost' }, { -- the last gives a new buffer its name
    group = group,
    callback = function(event)
      if event.buf == api.nvim_get_current_buf() then
        server.attach(event.buf)
        if event.event == 'BufEnter' then
          server.focused(event.buf)
        end
      end
    end,
  })
  api.nvim_create_autocmd('ColorScheme', { group = group, callback = require('midfill.ghost').highlight })
  on_progress(group)
  server.attach_all()
end

return M
