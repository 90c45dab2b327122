vim9script
# When to ask, what is shown, what became of it.

import autoload 'midfill/documents.vim'
import autoload 'midfill/edit.vim'
import autoload 'midfill/ghost.vim'
import autoload 'midfill/server.vim'

var bufnr = 0 # whose suggestions are shown; 0: none are
var candidates: list<dict<any>> = []
var index = 0
var lines = 0 # of the buffer
var tick = 0 # of the buffer when what is shown was last known to be right
var all = false # these are all there are: the user asked by hand
var told: list<dict<any>> = [] # those the server knows to have been shown

var asked = 0 # the request under way
var serial = 0 # of the newest request; answers to older ones are void
var last = '' # the last place that was asked about

# Nothing is shown where it could not be accepted: 'paste' takes the keys away, behind the end of the line
# ('virtualedit') it would not stand at the cursor, and a recorded macro would hold the key but not the text.
def Inserting(): bool
  return mode(1)[0] ==# 'i' && &modifiable && !pumvisible() && !&paste && getcurpos()[3] == 0 && reg_recording() ==# ''
enddef

def Hide()
  if bufnr != 0
    ghost.Clear()
    bufnr = 0
    candidates = []
  endif
enddef

def CancelRequest()
  serial += 1
  if asked != 0
    server.Cancel(asked)
    asked = 0
    server.Changed()
  endif
enddef

# What is left of the suggestion; empty if it does not hold any more.
def Current(): dict<any>
  if bufnr == 0 || bufnr != bufnr() || line('$') != lines
    return {}
  endif
  return edit.View(candidates[index], line('.'), col('.') - 1)
enddef

# Draw what holds, drop what does not.
def Draw(): bool
  var view = Current()
  if view->empty()
    Hide()
    return false
  endif
  tick = b:changedtick
  var candidate = candidates[index]
  ghost.Draw(view, candidate.lnum, len(candidates) > 1 ? $'({index + 1}/{len(candidates)})' : '')
  if told->indexof((_, each) => each is candidate) < 0
    told->add(candidate)
    server.Shown(candidate.item)
  endif
  return true
enddef

# `step`: by how many candidates to go on from the one that is shown, if the user asked for another.
def Present(items: list<any>, by_hand: bool, step: number)
  var found: list<dict<any>> = []
  var same = -1
  var old = Current()
  for item in items
    var candidate = edit.Candidate(item, line('.'), col('.') - 1)
    var view = candidate->empty() ? {} : edit.View(candidate, line('.'), col('.') - 1)
    if !view->empty()
      if !old->empty() && old.ghost ==# view.ghost && old.stop == view.stop
        same = len(found)
      endif
      found->add(candidate)
    endif
  endfor
  if by_hand && !old->empty() && same < 0 # the others come behind the one that is shown
    found->insert(candidates[index])
    same = 0
  elseif !by_hand && same == 0 && len(found) == 1
    return # the same still: it goes on under the name that the server knows to be shown
  endif
  Hide()
  if found->empty()
    return
  endif
  bufnr = bufnr()
  candidates = found
  var size = len(found)
  index = by_hand ? ((max([same, 0]) + step) % size + size) % size : 0
  lines = line('$')
  all = by_hand
  told = []
  Draw()
enddef

def Place(): string
  return $'{bufnr()}:{b:changedtick}:{line('.')}:{col('.')}'
enddef

# The server is told of every key, and decides when to answer. It drops older requests by itself.
def Ask(by_hand: bool, step: number)
  documents.Flush(bufnr())
  var uri = documents.Uri(bufnr())
  if uri ==# ''
    return
  endif
  serial += 1
  var mine = serial
  var here = Place()
  last = here
  var position = {line: line('.') - 1, character: edit.Units(strpart(getline('.'), 0, col('.') - 1))}
  asked = server.Ask(uri, position, by_hand, (items) => {
    if mine == serial
      asked = 0
      server.Changed()
      if Inserting() && here ==# Place()
        Present(items, by_hand, step)
      endif
    endif
  })
  server.Changed()
enddef

# Something was typed, or the cursor moved.
export def Update()
  if server.off || !Inserting() || documents.Uri(bufnr()) ==# ''
    Leave()
    return
  endif
  if Place() ==# last
    return
  endif
  if bufnr != 0
    var item = candidates[index].item
    var before = tick
    if !Draw() && before != b:changedtick
      server.Rejected(item) # something else was typed
    endif
  endif
  Ask(false, 0)
enddef

# The mode is known and the menu is gone a moment later.
export def UpdateSoon()
  timer_start(0, (_) => Update())
enddef

# Nothing is to be shown any more.
export def Leave()
  last = ''
  if asked != 0
    CancelRequest()
  endif
  Hide()
enddef

# Ctrl-C ends Insert mode without an event.
export def Check()
  if (bufnr != 0 || asked != 0) && !Inserting()
    Leave()
  endif
enddef

# The window shows other lines, or has another size.
export def Redraw()
  if bufnr != 0
    Draw()
  endif
enddef

export def Visible(): bool
  return Inserting() && !Current()->empty()
enddef

# A request is under way.
export def Waiting(): bool
  return asked != 0
enddef

export def Accept(kind: string)
  var view = Current()
  if view->empty()
    return
  endif
  var candidate = candidates[index]
  var size = edit.Part(view.ghost, kind)
  var stands = candidate.base + view.typed + size
  ghost.Clear()
  if edit.Insert(candidate, view, size)
    Hide()
    server.Accepted(candidate.item)
  else
    lines = line('$')
    candidates = [candidate]
    index = 0
    Draw()
    server.AcceptedPart(candidate.item, edit.AcceptedLength(candidate, stands))
  endif
enddef

export def Cycle(step: number)
  if bufnr != 0 && (all || len(candidates) > 1)
    index = ((index + step) % len(candidates) + len(candidates)) % len(candidates)
    Draw()
  else
    Ask(true, step)
  endif
enddef

export def Trigger()
  Ask(true, 0)
enddef

export def Dismiss()
  CancelRequest()
  if bufnr != 0
    var item = candidates[index].item
    Hide()
    server.Rejected(item)
  endif
enddef
