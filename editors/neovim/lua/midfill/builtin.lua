--- Suggestions through |vim.lsp.inline_completion| on Neovim 0.12 and newer, which asks for them and shows them.
--- What it does not do is done here: parts, dismissal, several candidates, reports, and CRLF.
local M = {}

local api = vim.api
local edit = require('midfill.edit')
local server = require('midfill.server')

local METHOD = 'textDocument/inlineCompletion'
local NAMESPACE = 'nvim.lsp.inline_completion'

---@type table<string, midfill.Candidate> what was answered to the last request, by the items' ids
local candidates = {}
---@type integer[] ids of clients whose requests are looked at
local wrapped = {}
local by_hand = false -- the next request is the user's
local waiting = 0 -- requests under way

---@param item table
---@return string?
local function id_of(item)
  return item.command and item.command.arguments and item.command.arguments[1]
end

---@return integer[] row from 0, byte column
local function cursor()
  local at = api.nvim_win_get_cursor(0)
  return { at[1] - 1, at[2] }
end

--- Look at what is asked and answered: the answer's lines are made those of a buffer, and shown ones are reported.
---@param client vim.lsp.Client
local function watch(client)
  local request = client.request
  client.request = function(first, ...)
    local arguments = first == client and { ... } or { first, ... }
    local method, params, handler, bufnr = unpack(arguments, 1, 4)
    if method ~= METHOD or not handler then
      return request(client, method, params, handler, bufnr)
    end
    if by_hand then
      params = vim.tbl_extend('force', params, { context = { triggerKind = server.Trigger.INVOKED } })
      by_hand = false
    end
    waiting = waiting + 1
    local at, line = cursor(), api.nvim_get_current_line()
    local encoding = client.offset_encoding --[[@as midfill.Encoding]]
    return request(client, method, params, function(err, result, context)
      waiting = waiting - 1
      candidates = {}
      if not api.nvim_buf_is_valid(context.bufnr) then
        return
      end
      local plain = {}
      for index, item in ipairs(result and (result.items or result) or {}) do
        candidates[id_of(item) or ''] = edit.candidate(context.bufnr, item, encoding, at, line)
        plain[index] = vim.tbl_extend('force', item, { insertText = edit.plain(context.bufnr, item.insertText) })
      end
      handler(err, not err and { items = plain } or nil, context)
      if plain[1] and api.nvim_get_mode().mode:sub(1, 1) == 'i' then
        server.shown(result.items and result.items[1] or result[1])
      end
    end, bufnr)
  end
end

---@param bufnr integer
---@param client vim.lsp.Client
function M.attach(bufnr, client)
  if not vim.tbl_contains(wrapped, client.id) then
    wrapped[#wrapped + 1] = client.id
    watch(client)
  end
  vim.lsp.inline_completion.enable(not server.state.off, { bufnr = bufnr })
  vim.schedule(function() -- who waits for a suggestion since before the server could be asked gets it now
    if bufnr == api.nvim_get_current_buf() and api.nvim_get_mode().mode:sub(1, 1) == 'i' then
      api.nvim_exec_autocmds('CursorMovedI', { buffer = bufnr })
    end
  end)
end

---@param bufnr integer
function M.detach(bufnr)
  if api.nvim_buf_is_valid(bufnr) then
    vim.lsp.inline_completion.enable(false, { bufnr = bufnr })
  end
end

function M.leave() end

---@return boolean
function M.visible()
  local namespace = api.nvim_get_namespaces()[NAMESPACE]
  return namespace ~= nil and #api.nvim_buf_get_extmarks(0, namespace, 0, -1, { limit = 1 }) > 0
end

---@return boolean
function M.waiting()
  return waiting > 0
end

--- Another server's item: put in as a whole.
---@param bufnr integer
---@param taken table vim.lsp.inline_completion.Item
local function insert_foreign(bufnr, taken)
  local text = type(taken.insert_text) == 'table' and taken.insert_text.value or taken.insert_text
  local range = taken.range
  local from = range and (range.start or { row = range.start_row, col = range.start_col })
  local to = range and (range.end_ or { row = range.end_row, col = range.end_col })
  if from and to then
    api.nvim_buf_set_text(bufnr, from.row, from.col, to.row, to.col, {})
    api.nvim_win_set_cursor(0, { from.row + 1, from.col })
  end
  api.nvim_paste(text, false, -1)
end

---@param bufnr integer
---@param candidate midfill.Candidate
---@param kind 'all'|'word'|'line'
local function insert(bufnr, candidate, kind)
  local view = edit.view(bufnr, candidate, cursor())
  if not view then -- something else was typed
    return
  end
  local size = edit.part(view.ghost, kind)
  if edit.insert(bufnr, candidate, view, size) then
    server.accepted(candidate.item)
  else -- the rest comes back at once from the server's cache
    server.accepted_part(candidate.item, edit.accepted_length(bufnr, candidate, view.typed + size))
  end
end

---@param kind 'all'|'word'|'line'
function M.accept(kind)
  local bufnr = api.nvim_get_current_buf()
  vim.lsp.inline_completion.get({
    bufnr = bufnr,
    on_accept = function(taken) -- a moment later
      local candidate = candidates[id_of(taken) or '']
      if candidate then
        insert(bufnr, candidate, kind)
      else
        insert_foreign(bufnr, taken)
      end
      api.nvim_feedkeys(vim.keycode('<C-g>u'), 'in', false) -- what is typed next is a step of its own for |undo|
    end,
  })
end

---@param step integer
function M.cycle(step)
  if vim.tbl_count(candidates) > 1 then
    vim.lsp.inline_completion.select({ count = step })
  else
    M.trigger()
  end
end

--- The built-in asks by itself after each move of the cursor: what it asks next counts as asked by hand.
function M.trigger()
  by_hand = true
  api.nvim_exec_autocmds('CursorMovedI', { buffer = api.nvim_get_current_buf() })
end

function M.dismiss()
  vim.lsp.inline_completion.get({
    on_accept = function(taken)
      server.rejected(taken)
    end,
  })
end

return M
