-- A stand-in for `vim.lsp.inline_completion` of Neovim 0.12, where that is not to be had: the same functions, events,
-- delay, marks and requests, so that what the plugin does around them can be run. Not used where the real one is.
local api = vim.api
local namespace = api.nvim_create_namespace('nvim.lsp.inline_completion')
local METHOD = 'textDocument/inlineCompletion'
local DELAY = 200 -- ms

local M = {}
local active = {} -- buffer -> { items, index, timer, requests }

local function hide(bufnr)
  api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
end

local function client_of(bufnr)
  return vim.lsp.get_clients({ bufnr = bufnr, method = METHOD })[1]
end

local function show(bufnr, hint)
  hide(bufnr)
  local state = active[bufnr]
  local item = state.items[state.index]
  if not item then
    return
  end
  local at, row = api.nvim_win_get_cursor(0), item.range.start.line
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  local from = vim.str_byteindex(line, client_of(bufnr).offset_encoding, item.range.start.character, false)
  local lines = vim.split(item.insertText, '\n', { plain = true })
  local rest = lines[1]:sub(math.max(at[2] - from, 0) + 1)
  local below = vim.tbl_map(function(each)
    return { { each, 'MidfillGhost' } }
  end, { unpack(lines, 2) })
  api.nvim_buf_set_extmark(bufnr, namespace, row, at[2], {
    virt_text = { { rest, 'MidfillGhost' }, { hint or '', 'MidfillCount' } },
    virt_text_pos = 'inline',
    virt_lines = below,
  })
end

local function request(bufnr)
  local client = client_of(bufnr)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = 2 }
  client:request(METHOD, params, function(err, result)
    if err or not result or not vim.startswith(api.nvim_get_mode().mode, 'i') then
      return
    end
    active[bufnr].items, active[bufnr].index = result.items or result, 1
    show(bufnr)
  end, bufnr)
end

local function stop_timer(state)
  if state.timer then
    state.timer:stop()
  end
end

local function abort(bufnr)
  local state = active[bufnr]
  stop_timer(state)
  state.items = {}
  hide(bufnr)
end

function M.enable(enable, filter)
  local bufnr = filter.bufnr
  local group = api.nvim_create_augroup('nvim.lsp.inline_completion:' .. bufnr, { clear = true })
  if enable == false then
    active[bufnr] = nil
    hide(bufnr)
    return
  end
  active[bufnr] = { items = {}, index = 1 }
  api.nvim_create_autocmd({ 'InsertEnter', 'CursorMovedI', 'TextChangedP' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      show(bufnr)
      stop_timer(active[bufnr])
      active[bufnr].timer = vim.defer_fn(function()
        request(bufnr)
      end, DELAY)
    end,
  })
  api.nvim_create_autocmd('InsertLeave', {
    group = group,
    buffer = bufnr,
    callback = function()
      abort(bufnr)
    end,
  })
end

function M.select(options)
  local bufnr = api.nvim_get_current_buf()
  local state = active[bufnr]
  state.index = (state.index - 1 + options.count) % #state.items + 1
  show(bufnr, (' (%d/%d)'):format(state.index, #state.items))
end

function M.get(options)
  local bufnr = options.bufnr or api.nvim_get_current_buf()
  local state = active[bufnr]
  local item = state and state.items[state.index]
  if not item then
    return false
  end
  vim.schedule(function()
    abort(bufnr)
    options.on_accept({
      client_id = client_of(bufnr).id,
      insert_text = item.insertText,
      command = item.command,
    })
  end)
  return true
end

return M
