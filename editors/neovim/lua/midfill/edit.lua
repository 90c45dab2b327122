--- Suggestions as text and byte columns of a buffer, and their insertion. Must not know the server or the screen.
local M = {}

local api = vim.api
local NEW = vim.fn.has('nvim-0.11') == 1 -- vim.str_byteindex and vim.str_utfindex take an encoding

---@alias midfill.Encoding 'utf-8'|'utf-16'|'utf-32'

---@class midfill.Candidate A suggestion, and where it belongs; columns are bytes, rows count from 0.
---@field item table the item as it came from the server, which is told about it
---@field text string what is to stand there, lines separated by "\n"
---@field row integer
---@field start integer where `text` begins
---@field after string what follows `text` on its line: it stays
---@field before string what stood between `start` and the cursor when it came
---@field replaced string what stood between the cursor and `after` when it came
---@field base integer bytes of the whole text that are accepted and stand in lines above
---@field whole string the whole text

---@class midfill.View What is still to be inserted of a candidate.
---@field from integer byte column where `ghost` begins
---@field cursor integer byte column of the cursor
---@field stop integer byte column where the text that stays begins
---@field ghost string
---@field typed integer bytes of the candidate's text that stand there already
---@field cut string text before the cursor that `ghost` takes the place of
---@field rest string text behind the cursor that `ghost` takes the place of
---@field kept? midfill.Kept[] characters of `rest` that `ghost` holds too; nil: it does not hold them all

---@class midfill.Kept
---@field ghost integer index of the character's last byte in `ghost`
---@field rest integer index of the character's last byte in `rest`
---@field size integer bytes

---@param line string
---@param units integer
---@param encoding midfill.Encoding
---@return integer
local function byte_column(line, units, encoding)
  if encoding == 'utf-8' then
    return math.min(units, #line)
  end
  if NEW then
    return vim.str_byteindex(line, encoding, units, false)
  end
  local utf32, utf16 = vim.str_utfindex(line)
  units = math.min(units, encoding == 'utf-16' and utf16 or utf32)
  return vim.str_byteindex(line, units, encoding == 'utf-16')
end

---@param text string
---@return integer UTF-16 units
local function utf16_length(text)
  if NEW then
    return vim.str_utfindex(text, 'utf-16')
  end
  local _, units = vim.str_utfindex(text)
  return units
end

--- The text of an item with the line ends that Neovim has within buffers.
---@param bufnr integer
---@param text string
---@return string
function M.plain(bufnr, text)
  local format = vim.bo[bufnr].fileformat
  if format == 'dos' then
    return (text:gsub('\r\n', '\n'))
  end
  return format == 'mac' and (text:gsub('\r', '\n')) or text
end

--- nil if the item is none for a place of one line around the cursor.
---@param bufnr integer
---@param item table lsp.InlineCompletionItem
---@param encoding midfill.Encoding
---@param cursor integer[] row from 0, byte column
---@param line? string the cursor's line when the item was asked for, if it may have changed since
---@return midfill.Candidate?
function M.candidate(bufnr, item, encoding, cursor, line)
  local row, column = cursor[1], cursor[2]
  line = line or api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  local text = type(item.insertText) == 'table' and item.insertText.value or item.insertText
  if not line or type(text) ~= 'string' then
    return nil
  end
  local start, stop = column, column
  if item.range then
    if item.range.start.line ~= row or item.range['end'].line ~= row then
      return nil
    end
    start = byte_column(line, item.range.start.character, encoding)
    stop = byte_column(line, item.range['end'].character, encoding)
  end
  if start > column or stop < column then
    return nil
  end
  text = M.plain(bufnr, text)
  return {
    item = item,
    text = text,
    whole = text,
    base = 0,
    row = row,
    start = start,
    after = line:sub(stop + 1),
    before = line:sub(start + 1, column),
    replaced = line:sub(column + 1, stop),
  }
end

--- Bytes that both begin with, never a part of a character.
---@param a string
---@param b string
---@return integer
local function common(a, b)
  local n = 0
  while n < #a and n < #b and a:byte(n + 1) == b:byte(n + 1) do
    n = n + 1
  end
  while n > 0 and n < #b and bit.band(b:byte(n + 1), 0xC0) == 0x80 do
    n = n - 1
  end
  return n
end

--- Where the characters of `rest` stand in the first line of `ghost`, in their order.
---@param ghost string
---@param rest string
---@return midfill.Kept[]? nil if they do not
local function kept(ghost, rest)
  local found, at, passed = {}, 1, 0
  local first = ghost:match('^[^\n]*') or ''
  for _, character in ipairs(vim.fn.split(rest, '\\zs')) do
    local _, last = first:find(character, at, true)
    if not last then
      return nil
    end
    passed = passed + #character
    found[#found + 1] = { ghost = last, rest = passed, size = #character }
    at = last + 1
  end
  return found
end

--- What of the candidate is still to come, if all that was typed since is its beginning; nil if not.
---@param bufnr integer
---@param candidate midfill.Candidate
---@param cursor integer[] row from 0, byte column
---@return midfill.View?
function M.view(bufnr, candidate, cursor)
  local column = cursor[2]
  local line = api.nvim_buf_get_lines(bufnr, cursor[1], cursor[1] + 1, false)[1]
  if cursor[1] ~= candidate.row or not line then
    return nil
  end
  local stop = #line - #candidate.after
  if column < candidate.start or column > stop or line:sub(stop + 1) ~= candidate.after then
    return nil
  end
  local before, rest = line:sub(candidate.start + 1, column), line:sub(column + 1, stop)
  local typed = common(before, candidate.text)
  if typed < #before and before ~= candidate.before then
    return nil
  end
  local ghost = candidate.text:sub(typed + 1)
  local same = kept(ghost, rest)
  if ghost == '' or ghost == rest or (not same and rest ~= candidate.replaced) then
    return nil
  end
  return {
    from = candidate.start + typed,
    cursor = column,
    stop = stop,
    ghost = ghost,
    typed = typed,
    cut = before:sub(typed + 1),
    rest = rest,
    kept = same,
  }
end

--- How many bytes of the ghost are its next word, or its next line. White space goes with what follows it.
---@param ghost string
---@param kind 'all'|'word'|'line'
---@return integer
function M.part(ghost, kind)
  if kind == 'all' then
    return #ghost
  end
  local blank = #ghost:match('^%s*')
  if kind == 'line' then
    local stop = ghost:find('\n', blank + 1, true)
    return stop and stop - 1 or #ghost
  end
  local word = vim.fn.matchstr(ghost:sub(blank + 1), [[^\%(\k\+\|\%(\k\@!\S\)\+\)]])
  return blank + #word
end

--- Put the first `size` bytes of what is shown into the buffer, the cursor behind them.
---@param bufnr integer
---@param candidate midfill.Candidate is changed to what is left of it
---@param view midfill.View
---@param size integer
---@return boolean whole nothing is left of it
function M.insert(bufnr, candidate, view, size)
  local whole = size >= #view.ghost
  local stop = view.cursor
  for _, each in ipairs(view.kept or {}) do
    if each.ghost <= size then
      stop = view.cursor + each.rest
    end
  end
  if whole then
    stop = view.stop
  end
  local part = view.ghost:sub(1, size)
  local lines = vim.split(part, '\n', { plain = true })
  if stop == view.from then -- like typed text: |.| repeats it
    api.nvim_paste(part, false, -1)
  else
    api.nvim_buf_set_text(bufnr, candidate.row, view.from, candidate.row, stop, lines)
  end
  local row = candidate.row + #lines - 1
  local column = (#lines == 1 and view.from or 0) + #lines[#lines]
  api.nvim_win_set_cursor(0, { row + 1, column })
  if #lines > 1 then -- what is left belongs to the last of these lines
    local above = view.typed + #part - #lines[#lines]
    candidate.base = candidate.base + above
    candidate.text = candidate.text:sub(above + 1)
    candidate.row, candidate.start = row, 0
  end
  return whole
end

--- How much of the item's text is accepted when this many bytes of it stand in the buffer, in UTF-16 units.
---@param bufnr integer
---@param candidate midfill.Candidate
---@param bytes integer
---@return integer
function M.accepted_length(bufnr, candidate, bytes)
  local text = candidate.whole:sub(1, bytes)
  local _, line_ends = text:gsub('\n', '')
  return utf16_length(text) + (vim.bo[bufnr].fileformat == 'dos' and line_ends or 0)
end

return M
