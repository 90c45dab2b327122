--- The server's process and what it is told. Must not know what is on the screen.
local M = {}

local api = vim.api
local config = require('midfill.config')

local INLINE_COMPLETION = 'textDocument/inlineCompletion'
local MOST_RESTARTS = 3 -- in a row, without a suggestion in between
local ROOT_MARKERS = { '.midfill.toml', '.git', '.hg', 'pyproject.toml', 'package.json', 'Cargo.toml', 'go.mod' }
-- The folder of the plugin's repository, if it lies in one.
local HERE = debug.getinfo(1, 'S').source:sub(2)
local ABOVE = vim.fn.fnamemodify(vim.uv.fs_realpath(HERE) or HERE, ':p:h:h:h:h:h')

---@class midfill.State
---@field client_id? integer
---@field off boolean switched off by the user
---@field stopping boolean the user wants it to end
---@field restarts integer since the last suggestion
---@field told_missing boolean
---@field problem? string the last warning of the server
---@field busy? string what the server is doing, such as loading a model
---@field exit? { code: integer, signal: integer, wanted: boolean } of the last server
---@field folders table<string, true> roots the server knows
M.state = { off = false, stopping = false, restarts = 0, told_missing = false, folders = {} }

--- Called when a client has been attached to a buffer; set by init.lua.
---@type fun(bufnr: integer, client: vim.lsp.Client)
M.on_attach = function(_, _) end

--- Methods of a client are called with a dot before Neovim 0.11, with a colon since.
---@param client vim.lsp.Client
---@param name string
function M.call(client, name, ...)
  if vim.fn.has('nvim-0.11') == 1 then
    return client[name](client, ...)
  end
  return client[name](...)
end

---@return string[]? command
---@return string[] tried
function M.command()
  if config.options.cmd then
    return config.options.cmd, {}
  end
  local name = vim.fn.has('win32') == 1 and 'midfill.exe' or 'midfill'
  local scripts = vim.fn.has('win32') == 1 and 'Scripts' or 'bin'
  local tried = { 'midfill', vim.fs.joinpath(ABOVE, '.venv', scripts, name), vim.fn.expand('~/.local/bin/' .. name) }
  for _, path in ipairs(tried) do
    local found = vim.fn.exepath(path)
    if found ~= '' then
      return { found }, tried
    end
  end
  return nil, tried
end

--- How to install the server: the end of a sentence.
---@return string
function M.installation()
  local tool = vim.fn.executable('uv') == 1 and 'uv tool install' or 'pipx install'
  local clone = vim.uv.fs_stat(vim.fs.joinpath(ABOVE, 'pyproject.toml')) and ABOVE
  return ('%s: %s "%s[local]"'):format(clone and 'run' or 'in a clone of midfill run', tool, clone or '.')
end

--- The state has changed: a statusline that shows it is drawn anew.
function M.changed()
  if vim.o.statusline:find('midfill', 1, true) then
    vim.cmd.redrawstatus()
  end
end

--- Neovim's own |vim.notify| stops the typing of a user with a prompt where a message needs a second line; this one is
--- cut on the screen and whole in |:messages|. One that a plugin brings is used as it is.
---@param message string
---@param level integer
function M.tell(message, level)
  vim.schedule(function()
    if not debug.getinfo(vim.notify, 'S').source:match('^@?vim/') then
      vim.notify(message, level, { title = 'midfill' })
      return
    end
    local groups = { [vim.log.levels.ERROR] = 'ErrorMsg', [vim.log.levels.WARN] = 'WarningMsg' }
    vim.cmd.echohl(groups[level] or 'None')
    vim.cmd.echomsg(vim.fn.string((message:gsub('%s*\n%s*', ' '))))
    vim.cmd.echohl('None')
  end)
end

---@return vim.lsp.Client? the running client, whether or not it is ready
function M.client()
  return M.state.client_id and vim.lsp.get_client_by_id(M.state.client_id) or nil
end

--- The client, if it is ready and knows the buffer.
---@param bufnr integer
---@return vim.lsp.Client?
function M.ready(bufnr)
  local client = M.client()
  if client and client.initialized and client.attached_buffers[bufnr] and not M.call(client, 'is_stopped') then
    return client
  end
end

---@param bufnr integer
---@return boolean
function M.wanted(bufnr)
  local options = vim.bo[bufnr]
  return api.nvim_buf_is_loaded(bufnr)
    and options.buftype == ''
    and not options.binary -- its bytes need not be text
    and api.nvim_buf_get_name(bufnr) ~= ''
end

--- A process that starts the server. Neovim is not told how it ended, as it would stop the typing of the user with a
--- prompt; `ended` is, and whether it was told to end, as |vim.lsp.stop_client()| does.
---@param cmd string[]
---@return fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient
local function start_process(cmd)
  return function(dispatchers)
    local wanted = false
    local told = {
      notification = dispatchers.notification,
      server_request = dispatchers.server_request,
      on_error = dispatchers.on_error,
      on_exit = function(code, signal)
        M.state.exit = { code = code, signal = signal, wanted = wanted }
        dispatchers.on_exit(0, 0)
      end,
    }
    local given = config.options.lsp
    local rpc = vim.lsp.rpc.start(cmd, told, { cwd = given.cmd_cwd, env = given.cmd_env, detached = given.detached })
    local notify, terminate = rpc.notify, rpc.terminate
    rpc.notify = function(method, params)
      wanted = wanted or method == 'exit'
      return notify(method, params)
    end
    rpc.terminate = function()
      wanted = true
      return terminate()
    end
    return rpc
  end
end

---@param client_id integer
local function ended(_, _, client_id)
  vim.schedule(function()
    local state, how = M.state, M.state.exit or {}
    if state.client_id ~= client_id then
      return
    end
    state.client_id, state.busy, state.folders = nil, nil, {}
    state.stopping = state.stopping or how.wanted or false
    if state.stopping or vim.v.exiting ~= vim.NIL then
      M.changed()
      return
    end
    state.restarts = state.restarts + 1
    local ending = ('the server ended with code %d, signal %d'):format(how.code or -1, how.signal or -1)
    if state.restarts > MOST_RESTARTS then
      state.problem = ('%s, %d times in a row'):format(ending, state.restarts)
      M.tell('midfill: ' .. state.problem .. '; see :checkhealth midfill, then :Midfill restart', vim.log.levels.ERROR)
      return
    end
    M.tell(('midfill: %s, and is started again'):format(ending), vim.log.levels.WARN)
    M.attach_all()
  end)
end

---@param ours function
---@param theirs? function
---@return function
local function together(ours, theirs)
  return function(...)
    ours(...)
    if theirs then
      theirs(...)
    end
  end
end

---@param result { type: integer, message: string }
local function show_message(_, result)
  local levels = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.DEBUG }
  if result.type <= 2 then
    M.state.problem = result.message
  end
  M.tell(result.message, levels[result.type] or vim.log.levels.INFO)
end

--- Tell the server about the folder of another project.
---@param client vim.lsp.Client
---@param bufnr integer
local function add_folder(client, bufnr)
  local root = vim.fs.root(bufnr, ROOT_MARKERS)
  if root and client.initialized and not M.state.folders[root] then
    M.state.folders[root] = true
    local folder = { uri = vim.uri_from_fname(root), name = root }
    M.call(client, 'notify', 'workspace/didChangeWorkspaceFolders', { event = { added = { folder }, removed = {} } })
  end
end

---@param root? string
---@param cmd string[]
---@return vim.lsp.ClientConfig
local function client_config(root, cmd)
  local settings = vim.tbl_isempty(config.options.settings) and vim.empty_dict() or config.options.settings
  local wanted = {
    name = 'midfill',
    cmd = start_process(cmd),
    root_dir = root,
    init_options = settings,
    settings = { midfill = settings },
    capabilities = vim.tbl_deep_extend('force', vim.lsp.protocol.make_client_capabilities(), {
      textDocument = { inlineCompletion = { dynamicRegistration = false } },
    }),
    handlers = { ['window/showMessage'] = show_message },
    get_language_id = function(_, filetype)
      return filetype
    end,
  }
  local result = vim.tbl_deep_extend('force', wanted, config.options.lsp)
  result.on_exit = together(ended, result.on_exit)
  result.on_attach = together(function(client, bufnr)
    if not M.client() then -- somebody has started it again with what it was started with
      M.state.client_id, M.state.stopping = client.id, false
    end
    add_folder(client, bufnr)
    M.on_attach(bufnr, client)
  end, result.on_attach)
  return result
end

--- Let the server know a buffer; it is started if it does not run.
---@param bufnr integer
function M.attach(bufnr)
  if M.state.stopping or M.state.restarts > MOST_RESTARTS or not M.wanted(bufnr) then
    return
  end
  local client = M.client()
  if client then
    if not client.attached_buffers[bufnr] then
      add_folder(client, bufnr)
      vim.lsp.buf_attach_client(bufnr, client.id)
    end
    return
  end
  local cmd = M.command()
  if not cmd or vim.fn.executable(cmd[1]) == 0 then
    M.state.problem = 'the server is not installed'
    if not M.state.told_missing then
      M.state.told_missing = true
      local missing = cmd and (' (%s cannot be run)'):format(cmd[1]) or ''
      M.tell(('midfill: the server is not installed%s; %s'):format(missing, M.installation()), vim.log.levels.WARN)
    end
    return
  end
  local root = vim.fs.root(bufnr, ROOT_MARKERS)
  M.state.folders = root and { [root] = true } or {}
  M.state.client_id = vim.lsp.start(client_config(root, cmd), {
    bufnr = bufnr,
    reuse_client = function()
      return false
    end,
  })
end

--- Attach the buffers that are shown.
function M.attach_all()
  for _, window in ipairs(api.nvim_list_wins()) do
    M.attach(api.nvim_win_get_buf(window))
  end
end

--- End the server; `again`: then start it anew.
---@param again boolean
function M.stop(again)
  local state, client = M.state, M.client()
  state.stopping, state.restarts, state.problem, state.told_missing = not again, 0, nil, false
  if client then
    state.client_id, state.busy, state.folders = nil, nil, {}
    M.call(client, 'stop')
  end
  if again then
    M.attach_all()
  end
end

-- Reports -------------------------------------------------------------------------------------------------------------

---@param name string
---@param arguments any[]
---@param callback? fun(err: table?, result: any)
---@return boolean asked
function M.execute(name, arguments, callback)
  local client = M.client()
  if not (client and client.initialized) then
    return false
  end
  local params = { command = name, arguments = arguments }
  return M.call(client, 'request', 'workspace/executeCommand', params, callback or function() end)
end

---@param method string
---@param params table
local function notify(method, params)
  local client = M.client()
  if client and client.initialized then
    M.call(client, 'notify', method, params)
  end
end

---@param item table
function M.shown(item)
  M.state.restarts, M.state.problem = 0, nil
  notify('textDocument/didShowCompletion', { item = item })
end

---@param item table
function M.accepted(item)
  if item.command then
    M.execute(item.command.command, item.command.arguments or {})
  end
end

---@param item table
---@param length integer UTF-16 units from the beginning of the item's text
function M.accepted_part(item, length)
  notify('textDocument/didPartiallyAcceptCompletion', { item = item, acceptedLength = length })
end

---@param item table
function M.rejected(item)
  if item.command and item.command.arguments then
    M.execute('midfill.reject', { item.command.arguments[1] })
  end
end

---@param bufnr integer
function M.focused(bufnr)
  local client = M.ready(bufnr)
  if client then
    notify('textDocument/didFocus', { textDocument = { uri = vim.uri_from_bufnr(bufnr) } })
  end
end

-- Requests ------------------------------------------------------------------------------------------------------------

---@enum midfill.Trigger
M.Trigger = { INVOKED = 1, AUTOMATIC = 2 } -- LSP 3.18; the draft before it counted from 0

--- Ask for suggestions at the cursor of the current window.
---@param bufnr integer
---@param kind midfill.Trigger
---@param callback fun(items: table[]?, encoding: midfill.Encoding) nil: no answer
---@return fun()? cancel nil: the server cannot be asked
function M.ask(bufnr, kind, callback)
  local client = M.ready(bufnr)
  if not client then
    return nil
  end
  local encoding = client.offset_encoding --[[@as midfill.Encoding]]
  local params = vim.lsp.util.make_position_params(0, encoding) --[[@as table]]
  params.context = { triggerKind = kind }
  local ok, id = M.call(client, 'request', INLINE_COMPLETION, params, function(err, result)
    callback(not err and (result and (result.items or result) or {}) or nil, encoding)
  end, bufnr)
  if not ok then
    return nil
  end
  return function()
    if id and not M.call(client, 'is_stopped') then
      M.call(client, 'cancel_request', id)
    end
  end
end

return M
