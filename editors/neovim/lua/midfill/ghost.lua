--- Draws what is still to come of a suggestion. Must not know where suggestions come from.
local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace('midfill')

M.GROUP = 'MidfillGhost'
M.COUNT = 'MidfillCount'

function M.highlight()
  local builtin = vim.fn.hlexists('ComplHint') == 1 -- 0.12
  -- NonText would be no grey in terminals of 256 colours.
  local grey = builtin and { link = 'ComplHint' } or { fg = '#808080', ctermfg = 244 }
  api.nvim_set_hl(0, M.GROUP, vim.tbl_extend('error', grey, { default = true }))
  api.nvim_set_hl(0, M.COUNT, { default = true, link = builtin and 'ComplHintMore' or 'MoreMsg' })
end

---@param bufnr integer
function M.clear(bufnr)
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

--- Tabs as the blanks they would take, since virtual text has none.
---@param bufnr integer
---@param text string
---@param cells integer where it begins on the screen
---@return string
local function expanded(bufnr, text, cells)
  local width, result = vim.bo[bufnr].tabstop, {}
  for piece, tab in (text .. '\0'):gmatch('([^\t%z]*)([\t%z])') do
    result[#result + 1] = piece
    cells = cells + api.nvim_strwidth(piece)
    if tab == '\t' then
      local blanks = width - cells % width
      result[#result + 1] = (' '):rep(blanks)
      cells = cells + blanks
    end
  end
  return table.concat(result)
end

--- The first `cells` cells of a text, filled up with blanks, and the rest of it.
---@param text string
---@param cells integer
---@return string
---@return string
local function split_at(text, cells)
  local head = vim.fn.strcharpart(text, 0, cells)
  while api.nvim_strwidth(head) > cells do
    head = vim.fn.strcharpart(head, 0, vim.fn.strchars(head) - 1)
  end
  local blanks = cells - api.nvim_strwidth(head)
  return head .. (' '):rep(blanks), text:sub(#head + 1)
end

---@param bufnr integer
---@param row integer
---@param column integer
---@param text string
---@param place 'inline'|'overlay'
local function put(bufnr, row, column, text, place)
  if text ~= '' then
    local chunks = { { text, M.GROUP } }
    api.nvim_buf_set_extmark(bufnr, namespace, row, column, { virt_text = chunks, virt_text_pos = place })
  end
end

---@param bufnr integer
---@param row integer
---@param view midfill.View
---@param count? string such as "(2/3)"
function M.draw(bufnr, row, view, count)
  M.clear(bufnr)
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  local lines = vim.split(view.ghost, '\n', { plain = true })
  local function cells(stop)
    return vim.fn.strdisplaywidth(line:sub(1, stop))
  end
  if view.cut == '' and view.kept then -- around the characters that stay
    local at, column = 1, view.cursor
    for _, each in ipairs(view.kept) do
      put(bufnr, row, column, expanded(bufnr, lines[1]:sub(at, each.ghost - each.size), cells(column)), 'inline')
      at, column = each.ghost + 1, view.cursor + each.rest
    end
    put(bufnr, row, column, expanded(bufnr, lines[1]:sub(at), cells(column)), 'inline')
  else -- over what it takes the place of
    local first = expanded(bufnr, lines[1], cells(view.from))
    local over, behind = split_at(first, cells(view.stop) - cells(view.from))
    put(bufnr, row, view.from, over, 'overlay')
    put(bufnr, row, view.stop, behind, 'inline')
  end
  local below, after = {}, line:sub(view.stop + 1)
  for index = 2, #lines do
    below[#below + 1] = { { expanded(bufnr, lines[index], 0), M.GROUP } }
  end
  if #below > 0 and after ~= '' then -- it will stand behind the last line
    put(bufnr, row, view.stop, (' '):rep(cells(#line) - cells(view.stop)), 'overlay')
    table.insert(below[#below], { expanded(bufnr, after, api.nvim_strwidth(below[#below][1][1])) })
  end
  if #below > 0 then
    if count then
      table.insert(below[#below], { ' ' .. count, M.COUNT })
    end
    api.nvim_buf_set_extmark(bufnr, namespace, row, view.from, { virt_lines = below })
  elseif count then
    local chunks = { { count, M.COUNT } }
    api.nvim_buf_set_extmark(bufnr, namespace, row, #line, { virt_text = chunks, virt_text_pos = 'eol' })
  end
end

return M
