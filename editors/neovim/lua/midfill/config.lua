--- What the user may set. Must not start anything.
local M = {}

---@class midfill.Keys Keys of Insert mode; `false` leaves a key alone.
---@field accept string|false
---@field accept_word string|false
---@field accept_line string|false
---@field next string|false
---@field previous string|false
---@field dismiss string|false
---@field trigger string|false

---@class midfill.Options
---@field cmd? string[] the server and its arguments; by default the first `midfill` that is found, see |midfill-server|
---@field settings table settings of the server, as in docs/configuration.md
---@field keys midfill.Keys
---@field lsp table fields of |vim.lsp.ClientConfig| that take precedence over those of this plugin

---@type midfill.Options
M.defaults = {
  cmd = nil,
  settings = {},
  keys = {
    accept = '<Tab>',
    accept_word = '<M-w>',
    accept_line = '<M-l>',
    next = '<M-]>',
    previous = '<M-[>',
    dismiss = '<C-]>',
    trigger = '<M-\\>',
  },
  lsp = {},
}

---@type midfill.Options
M.options = vim.deepcopy(M.defaults)

---@param known table
---@param given table
---@param path string
---@return string? problem
local function unknown(known, given, path)
  for name in pairs(given) do
    if known[name] == nil and not (path == '' and name == 'cmd') then
      return ('no option is called %s%s'):format(path, name)
    end
  end
end

--- Take the user's options. Raises an error that names the option which is wrong.
---@param given? table
function M.set(given)
  given = given or {}
  local types = { cmd = 'table', settings = 'table', keys = 'table', lsp = 'table' }
  for name, wanted in pairs(types) do
    if given[name] ~= nil and type(given[name]) ~= wanted then
      error(('midfill: %s must be a %s'):format(name, wanted), 0)
    end
  end
  local problem = unknown(M.defaults, given, '') or unknown(M.defaults.keys, given.keys or {}, 'keys.')
  if problem then
    error('midfill: ' .. problem, 0)
  end
  M.options = vim.tbl_deep_extend('force', M.defaults, given)
end

return M
