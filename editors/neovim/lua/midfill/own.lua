--- Suggestions as ghost text on Neovim 0.10 and 0.11: when to ask, what is shown, what became of it.
local M = {}

local api = vim.api
local edit = require('midfill.edit')
local ghost = require('midfill.ghost')
local server = require('midfill.server')

---@class midfill.Shown
---@field bufnr integer
---@field candidates midfill.Candidate[]
---@field index integer
---@field lines integer lines of the buffer
---@field tick integer of the buffer when it was last known to be right
---@field all boolean these are all there are: the user asked by hand
---@field told table<midfill.Candidate, true> those the server knows to have been shown

---@type midfill.Shown?
local shown
---@type fun()?
local cancel
local serial = 0 -- of the newest request; answers to older ones are void
local last = '' -- the last place that was asked about

--- Nothing is shown where it could not be accepted: 'paste' takes the keys away, behind the end of the line
--- ('virtualedit') it would not stand at the cursor, and a recorded macro would hold the key but not the text.
---@return boolean
local function inserting()
  return api.nvim_get_mode().mode == 'i' -- 'ic', 'ix': the keys are those of the popup menu
    and not vim.o.paste
    and vim.fn.getcurpos()[4] == 0
    and vim.fn.reg_recording() == ''
end

---@return integer[] row from 0, byte column
local function cursor()
  local at = api.nvim_win_get_cursor(0)
  return { at[1] - 1, at[2] }
end

local function hide()
  if shown then
    ghost.clear(shown.bufnr)
    shown = nil
  end
end

local function cancel_request()
  serial = serial + 1
  if cancel then
    cancel()
    cancel = nil
  end
end

--- What is left of the suggestion, if it still holds.
---@return midfill.View?
---@return midfill.Candidate?
local function current()
  if not shown or shown.bufnr ~= api.nvim_get_current_buf() then
    return nil
  end
  local candidate = shown.candidates[shown.index]
  if api.nvim_buf_line_count(shown.bufnr) ~= shown.lines then
    return nil
  end
  return edit.view(shown.bufnr, candidate, cursor()), candidate
end

--- Draw what holds, drop what does not.
---@return boolean
local function redraw()
  local view, candidate = current()
  if not shown or not view or not candidate then
    hide()
    return false
  end
  shown.tick = api.nvim_buf_get_changedtick(shown.bufnr)
  local count = #shown.candidates > 1 and ('(%d/%d)'):format(shown.index, #shown.candidates) or nil
  ghost.draw(shown.bufnr, candidate.row, view, count)
  if not shown.told[candidate] then
    shown.told[candidate] = true
    server.shown(candidate.item)
  end
  return true
end

---@param bufnr integer
---@param items table[]
---@param encoding midfill.Encoding
---@param step? integer by how many candidates to go on from the one that is shown
local function present(bufnr, items, encoding, step)
  local candidates, index = {}, nil
  local old, kept = current()
  for _, item in ipairs(items) do
    local candidate = edit.candidate(bufnr, item, encoding, cursor())
    local view = candidate and edit.view(bufnr, candidate, cursor())
    if candidate and view then
      candidates[#candidates + 1] = candidate
      index = old and old.ghost == view.ghost and old.stop == view.stop and #candidates or index
    end
  end
  if step and old and not index then -- the others come behind the one that is shown
    table.insert(candidates, 1, kept)
    index = 1
  elseif not step and index == 1 and #candidates == 1 then
    return -- the same still: it goes on under the name that the server knows to be shown
  end
  hide()
  if #candidates == 0 then
    return
  end
  index = step and ((index or 1) - 1 + step) % #candidates + 1 or 1
  shown = {
    bufnr = bufnr,
    candidates = candidates,
    index = index,
    lines = api.nvim_buf_line_count(bufnr),
    tick = api.nvim_buf_get_changedtick(bufnr),
    all = step ~= nil,
    told = {},
  }
  redraw()
end

---@return string
local function place(bufnr)
  local at = cursor()
  return ('%d:%d:%d:%d'):format(bufnr, api.nvim_buf_get_changedtick(bufnr), at[1], at[2])
end

--- The server is told of every key, and decides when to answer. It drops older requests by itself.
---@param bufnr integer
---@param kind midfill.Trigger
---@param step? integer
local function ask(bufnr, kind, step)
  serial = serial + 1
  local mine, here = serial, place(bufnr)
  last = here
  cancel = server.ask(bufnr, kind, function(items, encoding)
    if mine ~= serial then
      return
    end
    cancel = nil
    server.changed()
    if items and inserting() and bufnr == api.nvim_get_current_buf() and here == place(bufnr) then
      present(bufnr, items, encoding, step)
    end
  end)
  server.changed()
end

--- Something was typed, or the cursor moved.
---@param bufnr integer
function M.update(bufnr)
  if server.state.off or not inserting() then
    M.leave()
    return
  end
  if place(bufnr) == last then
    return
  end
  if shown then
    local item, tick = shown.candidates[shown.index].item, shown.tick
    if not redraw() and tick ~= api.nvim_buf_get_changedtick(bufnr) then
      server.rejected(item) -- something else was typed
    end
  end
  ask(bufnr, server.Trigger.AUTOMATIC)
end

--- Nothing is to be shown any more.
function M.leave()
  last = ''
  cancel_request()
  hide()
end

---@param bufnr integer
function M.attach(bufnr)
  local group = api.nvim_create_augroup('midfill.buffer.' .. bufnr, { clear = true })
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  on({ 'CursorMovedI', 'TextChangedI', 'TextChangedP' }, function() -- at once: nothing wrong is drawn in between
    M.update(bufnr)
  end)
  local function update_soon()
    vim.schedule(function()
      if bufnr == api.nvim_get_current_buf() then
        M.update(bufnr)
      end
    end)
  end
  on({ 'InsertEnter', 'CompleteDone' }, update_soon) -- the mode is known and the menu is gone a moment later
  on({ 'InsertLeave', 'BufLeave' }, M.leave)
  last = '' -- who waits for a suggestion since before the server could be asked gets it now
  update_soon()
end

---@param bufnr integer
function M.detach(bufnr)
  if shown and shown.bufnr == bufnr then
    M.leave()
  end
  pcall(api.nvim_del_augroup_by_name, 'midfill.buffer.' .. bufnr)
end

---@return boolean
function M.visible()
  return inserting() and current() ~= nil
end

---@return boolean a request is under way
function M.waiting()
  return cancel ~= nil
end

---@param kind 'all'|'word'|'line'
function M.accept(kind)
  local view, candidate = current()
  if not shown or not view or not candidate then
    return
  end
  local bufnr, size = shown.bufnr, edit.part(view.ghost, kind)
  local stands = candidate.base + view.typed + size
  local whole = edit.insert(bufnr, candidate, view, size)
  if whole then
    hide()
    server.accepted(candidate.item)
  else
    shown.lines, shown.candidates, shown.index = api.nvim_buf_line_count(bufnr), { candidate }, 1
    redraw()
    server.accepted_part(candidate.item, edit.accepted_length(bufnr, candidate, stands))
  end
end

---@param step integer
function M.cycle(step)
  if shown and (shown.all or #shown.candidates > 1) then
    shown.index = (shown.index - 1 + step) % #shown.candidates + 1
    redraw()
  else
    ask(api.nvim_get_current_buf(), server.Trigger.INVOKED, step)
  end
end

function M.trigger()
  ask(api.nvim_get_current_buf(), server.Trigger.INVOKED, 0)
end

function M.dismiss()
  cancel_request()
  if shown then
    local item = shown.candidates[shown.index].item
    hide()
    server.rejected(item)
  end
end

return M
