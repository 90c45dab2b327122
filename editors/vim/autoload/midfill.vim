vim9script
scriptencoding utf-8
# The plugin's functions: what `:Midfill` does, and what a status line shows.

import autoload 'midfill/config.vim'
import autoload 'midfill/documents.vim'
import autoload 'midfill/ghost.vim'
import autoload 'midfill/keys.vim'
import autoload 'midfill/places.vim'
import autoload 'midfill/server.vim'
import autoload 'midfill/suggest.vim'

const COMMANDS = ['disable', 'enable', 'explain', 'log', 'restart', 'status', 'stop', 'toggle']
const MARKS = {ready: '', thinking: ' …', off: ' off', error: ' !', stopped: ' -'}

# Who waits for a suggestion since before the server could be asked gets it now.
def Ready()
  documents.OpenAll()
  suggest.UpdateSoon()
enddef

# Once, when Vim has started.
export def SetUp()
  var wrong = config.Read()
  if wrong !=# ''
    server.Tell($'midfill: {wrong}', 'ErrorMsg')
  endif
  ghost.Highlight()
  keys.Map(config.keys)
  server.SetHandlers(Ready, Gone)
  augroup midfill
    autocmd!
    autocmd BufReadPost,BufEnter,FileType,BufFilePost * documents.Open(str2nr(expand('<abuf>')))
    autocmd BufEnter * documents.Focus(bufnr())
    autocmd BufUnload * documents.Close(str2nr(expand('<abuf>')))
    autocmd BufWritePost * documents.Saved(str2nr(expand('<abuf>')))
    autocmd TextChangedI,TextChangedP,CursorMovedI,InsertChange * suggest.Update()
    autocmd InsertEnter,CompleteDone * suggest.UpdateSoon()
    autocmd ModeChanged [^i]*:i* suggest.UpdateSoon()
    autocmd ModeChanged i*:[^i]* suggest.Leave()
    autocmd InsertLeave,BufLeave * suggest.Leave()
    autocmd SafeState * suggest.Check()
    autocmd WinScrolled,VimResized * suggest.Redraw()
    autocmd ColorScheme * ghost.Highlight()
    autocmd VimLeavePre * server.Stop(false)
  augroup END
  documents.OpenAll()
enddef

def Gone()
  suggest.Leave()
  documents.ForgetAll()
enddef

# Whether a suggestion is shown, for mappings of one's own.
export def Visible(): bool
  return suggest.Visible()
enddef

# What midfill is doing: "ready", "thinking", "off", "error" or "stopped"; and more about it, if there is more.
export def Status(): list<string>
  if server.off
    return ['off', '']
  elseif !server.Running()
    return [server.problem ==# '' ? 'stopped' : 'error', server.problem]
  elseif !server.Ready()
    return server.problem ==# '' ? ['thinking', 'starting'] : ['error', server.problem]
  elseif server.busy !=# ''
    return ['thinking', server.busy]
  elseif suggest.Waiting()
    return ['thinking', '']
  endif
  return [server.problem ==# '' ? 'ready' : 'error', server.problem]
enddef

# For the status line: `%{midfill#Statusline()}`.
export def Statusline(): string
  var [status, detail] = Status()
  return 'midfill' .. MARKS[status] .. (status ==# 'thinking' && detail !=# '' ? $' {detail}' : '')
enddef

export def Enable(on: bool)
  server.SetOff(!on)
  suggest.Leave()
  server.Execute('midfill.toggle', [on])
  server.Changed()
enddef

export def Toggle()
  Enable(server.off)
enddef

# A value of JSON as lines that people can read.
def Readable(value: any, indent: string): list<string>
  var result: list<string> = []
  var pairs: list<list<any>> = type(value) == v:t_dict ? items(value)->sort() : value->mapnew((at, each) => [at + 1, each])
  for [name, inner] in pairs
    if index([v:t_dict, v:t_list], type(inner)) >= 0 && !empty(inner)
      result->add($'{indent}{name}:')
      result->extend(Readable(inner, $'{indent}  '))
    else
      var texts = type(inner) == v:t_string ? inner->split("\n", true) : [json_encode(inner)]
      result->add($'{indent}{name}: {texts[0]}')
      result->extend(texts[1 :]->mapnew((_, text) => $'{indent}  {text}'))
    endif
  endfor
  return result
enddef

# In a scratch window, in place of the one with this title.
def Show(title: string, text: list<string>)
  for info in getbufinfo()->filter((_, each) => fnamemodify(each.name, ':t') ==# $'[midfill {title}]')
    execute $'bwipeout! {info.bufnr}'
  endfor
  new
  setlocal buftype=nofile bufhidden=wipe noswapfile nobuflisted
  execute $'silent file [midfill\ {title}]'
  setline(1, text)
  setlocal nomodifiable nomodified
enddef

def ShowAnswer(title: string, arguments: list<any>, above: list<string>)
  if !server.Ready()
    Show(title, above)
    return
  endif
  server.Execute($'midfill.{title}', arguments, (answer) => {
    var result: any = answer->get('result', null)
    var text = answer->has_key('error') ? [answer.error.message] : type(result) == v:t_dict || type(result) == v:t_list ?
      Readable(result, '') : [json_encode(result)]
    Show(title, above + text)
  })
enddef

def ShowStatus()
  var [command, tried] = places.Command()
  var [status, detail] = Status()
  var above = [
    $'midfill: {status}' .. (detail ==# '' ? '' : $', {detail}'),
    'server: ' .. (command->empty() ? $'not found as {tried->join(', ')}; {places.Installation()}' : join(command)),
  ]
  var problem = keys.AltProblem()
  ShowAnswer('status', [], above + (problem ==# '' ? [] : [$'keys: {problem}']))
enddef

export def Commands(_: string, _: string, _: number): string
  return COMMANDS->join("\n")
enddef

export def Command(name: string)
  if name ==# '' || name ==# 'status'
    ShowStatus()
  elseif name ==# 'explain'
    ShowAnswer('explain', [documents.Uri(bufnr())], [])
  elseif name ==# 'log'
    Show('log', server.Log())
  elseif name ==# 'toggle'
    Toggle()
  elseif name ==# 'enable' || name ==# 'disable'
    Enable(name ==# 'enable')
  elseif name ==# 'stop' || name ==# 'restart'
    server.Stop(name ==# 'restart')
    documents.OpenAll()
  else
    server.Tell($'midfill: no command {name}; there are {COMMANDS->join(', ')}', 'ErrorMsg')
  endif
enddef
