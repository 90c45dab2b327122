vim9script
scriptencoding utf-8
# Draws what is still to come of a suggestion. Must not know where suggestions come from.

const GHOST = 'MidfillGhost' # highlight groups, and types of text properties
const COUNT = 'MidfillCount'

var popups: list<number> = []
var drawn = 0 # the buffer that holds text of ours
var folded = true # all of it is within lines that are there

export def Highlight()
  var grey = str2nr(&t_Co) >= 256 ? '244' : 'DarkGray'
  execute $'highlight default {GHOST} term=NONE cterm=NONE ctermfg={grey} gui=NONE guifg=#808080'
  execute $'highlight default link {COUNT} MoreMsg'
  for name in [GHOST, COUNT]
    if prop_type_get(name)->empty()
      prop_type_add(name, {highlight: name, combine: false})
    endif
  endfor
enddef

# Vim 9.0 does not always notice that a line has become taller or less tall where virtual text stands at its end: the
# windows are looked at as after a change of an option.
def Redraw(bufnr: number)
  for window in win_findbuf(bufnr)
    noautocmd setwinvar(window, '&number', getwinvar(window, '&number'))
  endfor
enddef

export def Clear()
  for popup in popups
    popup_close(popup)
  endfor
  popups = []
  if drawn != 0 && bufloaded(drawn)
    prop_remove({types: [GHOST, COUNT], bufnr: drawn, all: true})
    if !folded
      Redraw(drawn)
    endif
  endif
  drawn = 0
  folded = true
enddef

# As a line of a buffer would show it, beginning at `cells`: virtual text has no tabs, and Vim sends most control
# characters in it to the terminal as they are, which would obey them.
def Expanded(text: string, cells: number): string
  var result = ''
  var at = cells
  for piece in text->split('\t\zs', true)
    var shown = piece->trim("\t", 2)
    var blanks = strdisplaywidth(piece, at) - strdisplaywidth(shown, at)
    result ..= strtrans(shown) .. repeat(' ', blanks)
    at += strdisplaywidth(piece, at)
  endfor
  return result
enddef

# The first `cells` cells of a text, filled up with blanks, and the rest of it.
def SplitAt(text: string, cells: number): list<string>
  var head = strcharpart(text, 0, cells)
  while strdisplaywidth(head) > cells
    head = strcharpart(head, 0, strchars(head) - 1)
  endwhile
  return [head .. repeat(' ', cells - strdisplaywidth(head)), strpart(text, strlen(head))]
enddef

def Put(lnum: number, column: number, text: string)
  if text !=# ''
    prop_add(lnum, column + 1, {type: GHOST, text: text})
  endif
enddef

# How many cells of text a row of the window has.
def Columns(): number
  var info = getwininfo(win_getid())[0]
  return max([info.width - info.textoff, 1])
enddef

# Over what stands on the screen, `cells` behind where the line begins.
def Cover(place: dict<number>, cells: number, text: string)
  if text ==# ''
    return
  endif
  popups->add(popup_create(text, {
    line: place.row,
    col: place.col + cells,
    highlight: GHOST,
    wrap: false,
    fixed: true,
    scrollbar: false,
    mapping: true,
    zindex: 1,
  }))
enddef

# How many lines fit below one whose text takes this many cells.
def Room(place: dict<number>, cells: number): number
  var info = getwininfo(win_getid())[0]
  var rows = &wrap ? (max([cells, 1]) - 1) / Columns() + 1 : 1
  var above = place.row == 0 ? winline() - 1 : place.row - info.winrow
  return info.height - above - rows
enddef

# `count` is such as "(2/3)", or empty.
export def Draw(view: dict<any>, lnum: number, count: string)
  Clear()
  drawn = bufnr()
  var place = screenpos(win_getid(), lnum, 1)
  var line = getline(lnum)
  var lines = view.ghost->split("\n", true)
  var from = strdisplaywidth(strpart(line, 0, view.from))
  var stop = strdisplaywidth(strpart(line, 0, view.stop))
  var first = Expanded(lines[0], from)
  var after = strpart(line, view.stop)
  var width = strdisplaywidth(line) - stop
  var end = from + max([strdisplaywidth(first), stop - from])
  var coverable = place.col > 0 && end + width <= Columns() # all on one row of the screen
  var covers: list<list<any>> = []
  if view.cut ==# '' && view.holds # around the characters that stay
    var at = 0
    var column = view.cursor
    for [ghost, rest, size] in view.kept
      var cells = strdisplaywidth(strpart(line, 0, column))
      Put(lnum, column, Expanded(strpart(lines[0], at, ghost - size - at), cells))
      at = ghost
      column = view.cursor + rest
    endfor
    Put(lnum, column, Expanded(strpart(lines[0], at), strdisplaywidth(strpart(line, 0, column))))
  elseif !coverable
    Put(lnum, view.stop, first)
  else # over what it takes the place of
    var [over, behind] = SplitAt(first, stop - from)
    covers->add([from, over])
    Put(lnum, view.stop, behind)
  endif
  var below: list<string> = lines[1 :]->mapnew((_, each) => Expanded(each, 0))
  if !below->empty() && after !=# '' && coverable # it will stand behind the last line
    covers->add([end, repeat(' ', width)])
    below[-1] ..= Expanded(after, strdisplaywidth(below[-1]))
  endif
  var room = Room(place, end + width + strdisplaywidth(count) + 3)
  DrawBelow(lnum, below, max([min([room, len(below)]), 0]), count)
  for [cells, text] in covers
    Cover(place, cells, text)
  endfor
enddef

# What does not fit into the window is left out: Vim shows no part of a line that has become too tall.
def DrawBelow(lnum: number, below: list<string>, room: number, count: string)
  for at in range(room)
    prop_add(lnum, 0, {type: GHOST, text: below[at] ==# '' ? ' ' : below[at], text_align: 'below'})
  endfor
  var behind = [count, len(below) > room ? '…' : '']->filter((_, each) => each !=# '')->join(' ')
  if behind !=# ''
    prop_add(lnum, 0, {type: COUNT, text: behind, text_align: 'after', text_padding_left: 1})
  endif
  if room > 0
    folded = false
    Redraw(drawn)
  endif
enddef
