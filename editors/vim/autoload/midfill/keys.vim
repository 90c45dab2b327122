vim9script
# Maps the keys; where nothing is shown a key does what it did before.

import autoload 'midfill/documents.vim'
import autoload 'midfill/server.vim'
import autoload 'midfill/suggest.vim'

const SHORT_MS = 100 # waiting so long for the rest of a key does not disturb who types Esc
# Behind an Esc these begin an answer of the terminal or a cursor key, from which Alt with them cannot be told apart.
const TAKEN = '[]OPX^_'

export def Map(keys: dict<string>)
  for [name, lhs] in items(keys)
    if lhs !=# ''
      Keep(name, lhs)
      execute $'imap <silent> <expr> {lhs} midfill#keys#Press("{name}")'
    endif
  endfor
  if !has('gui_running') && EscIsShort()
    MapEscaped(keys)
  endif
enddef

def Plug(what: string, name: string): string
  return $'<Plug>(midfill-{what}{name->tr('_', '-')})'
enddef

# What the key did before goes under a name: a mapping as it is; the key itself with the abbreviations that it ends. With
# Alt alone that is nothing worth keeping.
def Keep(name: string, lhs: string)
  var kept = Plug('before-', name)
  var plain = Plug('plain-', name)
  execute $'inoremap <silent> {plain} ' .. (lhs =~? '^<[MA]-' ? '<Nop>' : lhs ==? '<C-]>' ? lhs : $'<C-]>{lhs}')
  var before = maparg(lhs, 'i', false, true)
  if before->empty() || before.buffer
    execute $'imap <silent> {kept} {plain}'
    return
  endif
  if !before.expr && !before.noremap && stridx(before.rhs, before.lhs) == 0 # itself, which is not mapped again
    before.rhs = plain .. strpart(before.rhs, strlen(before.lhs))
  endif
  before.rhs = before.rhs->substitute('\c<SID>', $'<SNR>{before.sid}_', 'g') # |mapset()| would make it one of ours
  before.lhs = kept
  before.lhsraw = Keys(kept)
  if before->has_key('lhsrawalt')
    before->remove('lhsrawalt')
  endif
  mapset('i', false, before)
enddef

def Keys(name: string): string
  return eval($'"\{name}"')
enddef

def EscIsShort(): bool
  return &ttimeout ? &ttimeoutlen >= 0 && &ttimeoutlen <= SHORT_MS : &timeout && &timeoutlen <= SHORT_MS
enddef

# Whether a terminal that sends Esc before a key that is typed with Alt is understood: what does not come so otherwise.
export def AltProblem(): string
  return has('gui_running') || EscIsShort() ? '' : 'for keys with Alt set ttimeout ttimeoutlen=50, before Vim has started'
enddef

# Most terminals send Esc before a key that is typed with Alt. Each gets a code of its own, which stands for those two
# keys wherever nothing is shown.
def MapEscaped(keys: dict<string>)
  var number = 0
  for [name, lhs] in items(keys)
    var key = matchstr(lhs, '^<[MAma]-\zs.\ze>$')
    if key ==# '' || stridx(TAKEN, key) >= 0
      continue
    endif
    number += 1
    var code = $'<t_m{number}>'
    execute $'legacy let &t_m{number} = "\e" . ' .. string(key)
    var typed = key ==# '|' ? '<Bar>' : key
    execute $'map <silent> {code} <Esc><Ignore>{typed}' # <Ignore>: not the code again
    execute $'tnoremap <silent> {code} <Esc>{typed}'
    execute $'cnoremap <silent> {code} <C-C>{typed}' # a mapped <Esc> would run the command
    execute $'imap <silent> <expr> {code} midfill#keys#PressEscaped("{name}", {string(key)})'
  endfor
enddef

def Possible(name: string): bool
  if index(['next', 'previous', 'trigger'], name) >= 0
    return !server.off && documents.Uri(bufnr()) !=# ''
  endif
  return suggest.Visible()
enddef

export def Press(name: string): string
  return Keys(Plug(Possible(name) ? '' : 'before-', name))
enddef

export def PressEscaped(name: string, key: string): string
  return Possible(name) && reg_executing() ==# '' ? Keys(Plug('', name)) : "\<Esc>\<Ignore>" .. key
enddef
