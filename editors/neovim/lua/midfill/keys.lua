--- Maps the keys; where nothing is shown a key does what it did before.
local M = {}

local api = vim.api
local MARK = 'midfill: ' -- how the descriptions of our mappings begin

---@type table<string, table> what each key did before it was mapped here
local formers = {}

--- The right side of a mapping of a script, as |maparg()| gives it: `<SID>` is that script.
---@param before table
---@return string
local function right_side(before)
  return (before.rhs:gsub('<[sS][iI][dD]>', ('<SNR>%d_'):format(before.sid)))
end

--- What the key did before, as keys for an `expr` mapping. With Alt alone that is nothing worth keeping.
---@param before table as |maparg()| gives it
---@param lhs string
---@return string
local function former(before, lhs)
  if vim.tbl_isempty(before) then
    return lhs:find('^<[MA]%-') and '' or vim.keycode(lhs)
  end
  if before.callback then
    if before.expr == 1 then
      local keys = before.callback()
      return type(keys) == 'string' and (before.replace_keycodes == 1 and vim.keycode(keys) or keys) or ''
    end
    vim.schedule(before.callback)
    return ''
  end
  local keys = before.expr == 1 and api.nvim_eval(right_side(before)) or vim.keycode(right_side(before))
  if before.noremap == 1 then
    return keys
  end
  api.nvim_feedkeys(keys, 'im', false)
  return ''
end

---@param keys midfill.Keys
---@param actions table the functions called like the keys
function M.map(keys, actions)
  for name, lhs in pairs(keys) do
    if lhs and lhs ~= '' then
      local before = vim.fn.maparg(lhs, 'i', false, true)
      if vim.startswith(before.desc or '', MARK) or before.buffer == 1 then
        before = formers[lhs] or {}
      end
      formers[lhs] = before
      vim.keymap.set('i', lhs, function()
        return actions[name]() and '' or former(before, lhs)
      end, { expr = true, replace_keycodes = false, desc = MARK .. name:gsub('_', ' ') })
    end
  end
end

return M
