" Only the command and, once Vim has started, the keys and events: what is heavier is loaded when it is needed.
if exists('g:loaded_midfill')
  finish
endif
let g:loaded_midfill = 1

" What is missing is said once, in a line that fits on the screen.
function! s:missing() abort
  if !has('vim9script') || !has('patch-9.0.0185')
    return 'Vim 9.0.0185 or newer'
  endif
  for l:feature in ['channel', 'job', 'textprop', 'timers', 'popupwin']
    if !has(l:feature)
      return 'a Vim with +' .. l:feature
    endif
  endfor
  return ''
endfunction

let s:lacking = has('nvim') ? 'the plugin for Neovim' : s:missing()
if s:lacking !=# ''
  let s:told = 'midfill needs ' . s:lacking
  execute 'command! -nargs=? Midfill echomsg' string(s:told)
  autocmd VimEnter * ++once Midfill
  finish
endif

command! -nargs=? -complete=custom,midfill#Commands Midfill call midfill#Command(<q-args>)

inoremap <silent> <Plug>(midfill-accept) <C-G>u<Cmd>call midfill#suggest#Accept('all')<CR><C-G>u
inoremap <silent> <Plug>(midfill-accept-word) <C-G>u<Cmd>call midfill#suggest#Accept('word')<CR><C-G>u
inoremap <silent> <Plug>(midfill-accept-line) <C-G>u<Cmd>call midfill#suggest#Accept('line')<CR><C-G>u
inoremap <silent> <Plug>(midfill-next) <Cmd>call midfill#suggest#Cycle(1)<CR>
inoremap <silent> <Plug>(midfill-previous) <Cmd>call midfill#suggest#Cycle(-1)<CR>
inoremap <silent> <Plug>(midfill-dismiss) <Cmd>call midfill#suggest#Dismiss()<CR>
inoremap <silent> <Plug>(midfill-trigger) <Cmd>call midfill#suggest#Trigger()<CR>

" Other plugins map their keys while Vim starts; what they map is kept for when nothing is shown.
if v:vim_did_enter
  call midfill#SetUp()
else
  autocmd VimEnter * ++once ++nested call midfill#SetUp()
endif
