vim9script
# What the server knows of the buffers. Its text has one "\n" behind each line, whatever the file has.

import autoload 'midfill/places.vim'
import autoload 'midfill/server.vim'

const MOST_CHANGES = 100 # in one message; of more the whole text is shorter

# By the buffer's number: its uri, language, version, how many lines the server knows, and who listens to changes.
var known: dict<dict<any>> = {}

# Characters that would end a line stand as blanks, so that lines and columns are the buffer's.
def Text(lines: list<string>): string
  if lines->empty()
    return ''
  endif
  var text = join(lines, "\n") .. "\n"
  if stridx(text, "\r") < 0 && count(text, "\n") == len(lines)
    return text
  endif
  return join(lines->mapnew((_, line) => tr(line, "\n\r", '  ')), "\n") .. "\n"
enddef

def Wanted(bufnr: number): bool
  var name = bufname(bufnr)
  return bufloaded(bufnr)
    && name !=# ''
    && !isdirectory(name)
    && getbufvar(bufnr, '&buftype') ==# ''
    && !getbufvar(bufnr, '&binary') # its bytes need not be text
enddef

def LineCount(bufnr: number): number
  return bufnr == bufnr() ? line('$') : getbufinfo(bufnr)[0].linecount
enddef

def UriOf(bufnr: number): string
  var name = bufname(bufnr)
  return places.Uri(name =~# '^\a\a\+://' ? name : fnamemodify(name, ':p'))
enddef

# Empty if the server does not know the buffer.
export def Uri(bufnr: number): string
  return server.Ready() && known->has_key(bufnr) ? known[bufnr].uri : ''
enddef

# Let the server know a buffer.
export def Open(bufnr: number)
  if !Wanted(bufnr)
    Close(bufnr)
    return
  endif
  var uri = UriOf(bufnr)
  var language = getbufvar(bufnr, '&filetype')
  if known->has_key(bufnr) && known[bufnr].uri ==# uri && known[bufnr].language ==# language
    return
  endif
  Close(bufnr)
  if !server.Attach(fnamemodify(bufname(bufnr), ':p'))
    return
  endif
  known[bufnr] = {
    uri: uri,
    language: language,
    version: 1,
    lines: LineCount(bufnr),
    listener: listener_add(Changed, bufnr),
  }
  var text = Text(getbufline(bufnr, 1, '$'))
  server.Notify('textDocument/didOpen', {
    textDocument: {uri: uri, languageId: language, version: 1, text: text},
  })
  if bufnr == bufnr()
    Focus(bufnr)
  endif
enddef

# Open the buffers that are shown.
export def OpenAll()
  for bufnr in getwininfo()->mapnew((_, window) => window.bufnr)->sort()->uniq()
    Open(bufnr)
  endfor
enddef

export def Close(bufnr: number)
  if known->has_key(bufnr)
    var document = known->remove(bufnr)
    listener_remove(document.listener)
    server.Notify('textDocument/didClose', {textDocument: {uri: document.uri}})
  endif
enddef

# The server has gone.
export def ForgetAll()
  for document in values(known)
    listener_remove(document.listener)
  endfor
  known = {}
enddef

export def Focus(bufnr: number)
  var uri = Uri(bufnr)
  if uri !=# ''
    server.Notify('textDocument/didFocus', {textDocument: {uri: uri}})
  endif
enddef

export def Saved(bufnr: number)
  Open(bufnr) # under the name that it may have only now
  var uri = Uri(bufnr)
  if uri !=# ''
    Flush(bufnr)
    server.Notify('textDocument/didSave', {textDocument: {uri: uri}})
  endif
enddef

# What was changed is told before it is drawn, or when something is asked.
export def Flush(bufnr: number)
  listener_flush(bufnr)
enddef

def Changed(bufnr: number, _: number, _: number, _: number, changes: list<dict<number>>)
  if !known->has_key(bufnr)
    return
  endif
  var document = known[bufnr]
  var content: list<dict<any>> = []
  for change in changes->len() > MOST_CHANGES ? [] : changes
    var stop = change.end + change.added
    content->add({
      range: {
        start: {line: change.lnum - 1, character: 0},
        end: {line: max([change.end, change.lnum]) - 1, character: 0},
      },
      text: stop > change.lnum ? Text(getbufline(bufnr, change.lnum, stop - 1)) : '',
    })
    document.lines += change.added
  endfor
  var count = LineCount(bufnr)
  if content->empty() || document.lines != count
    content = [{text: Text(getbufline(bufnr, 1, '$'))}]
    document.lines = count
  endif
  document.version += 1
  server.Notify('textDocument/didChange', {
    textDocument: {uri: document.uri, version: document.version},
    contentChanges: content,
  })
enddef
