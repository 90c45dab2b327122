vim9script
# Suggestions as text and byte columns of a buffer, and their insertion. Must not know the server or the screen.
#
# A candidate is a suggestion and where it belongs; columns are bytes and count from 0, lines count from 1:
#   item      as it came from the server, which is told about it
#   whole     its text, lines separated by "\n"
#   text      what of it is to stand in the line `lnum`, and behind
#   lnum      the line
#   start     where `text` begins
#   before    what stood between `start` and the cursor when it came
#   replaced  what stood between the cursor and `after` when it came
#   after     what follows `text` on its line: it stays
#   base      bytes of `whole` that are accepted and stand in lines above
#
# A view is what is still to be inserted of one:
#   from      where `ghost` begins
#   cursor    the cursor
#   stop      where the text that stays begins
#   ghost     the text
#   typed     bytes of the candidate's text that stand there already
#   cut       text before the cursor that `ghost` takes the place of
#   rest      text behind the cursor that `ghost` takes the place of
#   holds     whether `ghost` holds all characters of `rest`
#   kept      for each of them [behind it in `ghost`, behind it in `rest`, its size]

# The line before the cursor, as the server counts it.
export def Units(text: string): number
  return strchars(text)
enddef

def ByteColumn(line: string, units: number): number
  var column = byteidxcomp(line, units)
  return column < 0 ? strlen(line) : column
enddef

# Empty if the item is none for a place of one line around the cursor.
export def Candidate(item: dict<any>, lnum: number, column: number): dict<any>
  var line = getline(lnum)
  var text: any = item->get('insertText', null)
  if type(text) == v:t_dict
    text = text->get('value', null)
  endif
  if type(text) != v:t_string
    return {}
  endif
  var start = column
  var stop = column
  var range: any = item->get('range', null)
  if type(range) == v:t_dict
    if range.start.line != lnum - 1 || range.end.line != lnum - 1
      return {}
    endif
    start = ByteColumn(line, range.start.character)
    stop = ByteColumn(line, range.end.character)
  endif
  if start > column || stop < column
    return {}
  endif
  return {
    item: item,
    whole: text,
    text: text,
    lnum: lnum,
    start: start,
    before: strpart(line, start, column - start),
    replaced: strpart(line, column, stop - column),
    after: strpart(line, stop),
    base: 0,
  }
enddef

# Bytes that both begin with, never a part of a character.
def Common(a: string, b: string): number
  var low = 0
  var high = min([strlen(a), strlen(b)])
  while low < high
    var middle = (low + high + 1) / 2
    if strpart(a, 0, middle) ==# strpart(b, 0, middle)
      low = middle
    else
      high = middle - 1
    endif
  endwhile
  while low > 0 && &encoding ==# 'utf-8' && and(char2nr(strpart(b, low, 1)), 0xC0) == 0x80
    low -= 1
  endwhile
  return low
enddef

# Where the characters of `rest` stand in the first line of `ghost`, in their order; the second: all of them do.
def Kept(ghost: string, rest: string): list<any>
  var found: list<list<number>> = []
  var first = ghost->split("\n", true)[0]
  var at = 0
  var passed = 0
  for character in split(rest, '\zs')
    var place = stridx(first, character, at)
    if place < 0
      return [[], false]
    endif
    at = place + strlen(character)
    passed += strlen(character)
    found->add([at, passed, strlen(character)])
  endfor
  return [found, true]
enddef

# What of the candidate is still to come, if all that was typed since is its beginning; empty if not.
export def View(candidate: dict<any>, lnum: number, column: number): dict<any>
  var line = getline(lnum)
  var stop = strlen(line) - strlen(candidate.after)
  if lnum != candidate.lnum || column < candidate.start || column > stop || strpart(line, stop) !=# candidate.after
    return {}
  endif
  var before = strpart(line, candidate.start, column - candidate.start)
  var rest = strpart(line, column, stop - column)
  var typed = Common(before, candidate.text)
  if typed < strlen(before) && before !=# candidate.before
    return {}
  endif
  var ghost = strpart(candidate.text, typed)
  var [kept, holds] = Kept(ghost, rest)
  if ghost ==# '' || ghost ==# rest || (!holds && rest !=# candidate.replaced)
    return {}
  endif
  return {
    from: candidate.start + typed,
    cursor: column,
    stop: stop,
    ghost: ghost,
    typed: typed,
    cut: strpart(before, typed),
    rest: rest,
    holds: holds,
    kept: kept,
  }
enddef

# How many bytes of the ghost are its next word, or its next line. White space goes with what follows it.
export def Part(ghost: string, kind: string): number
  if kind ==# 'all'
    return strlen(ghost)
  endif
  var blank = matchend(ghost, '^\_s*')
  if kind ==# 'line'
    var stop = stridx(ghost, "\n", blank)
    return stop < 0 ? strlen(ghost) : stop
  endif
  return blank + strlen(matchstr(strpart(ghost, blank), '^\%(\k\+\|\%(\k\@!\S\)\+\)'))
enddef

# Put the first `size` bytes of what is shown into the buffer, the cursor behind them. The candidate becomes what is
# left of it. Returns whether nothing is.
export def Insert(candidate: dict<any>, view: dict<any>, size: number): bool
  var whole = size >= strlen(view.ghost)
  var stop = view.cursor
  for [ghost, rest, _] in view.kept
    if ghost <= size
      stop = view.cursor + rest
    endif
  endfor
  if whole
    stop = view.stop
  endif
  var part = strpart(view.ghost, 0, size)
  var lines = part->split("\n", true)
  var last = strlen(lines[-1])
  var line = getline(candidate.lnum)
  lines[-1] ..= strpart(line, stop)
  setline(candidate.lnum, strpart(line, 0, view.from) .. lines[0])
  if len(lines) > 1
    append(candidate.lnum, lines[1 :])
  endif
  cursor(candidate.lnum + len(lines) - 1, (len(lines) == 1 ? view.from : 0) + last + 1)
  if len(lines) > 1 # what is left belongs to the last of these lines
    var above = view.typed + size - last
    candidate.base += above
    candidate.text = strpart(candidate.text, above)
    candidate.lnum += len(lines) - 1
    candidate.start = 0
  endif
  return whole
enddef

# How much of the item's text is accepted when this many bytes of it stand in the buffer, in UTF-16 units.
export def AcceptedLength(candidate: dict<any>, bytes: number): number
  var text = strpart(candidate.whole, 0, bytes)
  var points = str2list(text)
  return len(points) + points->filter((_, point) => point > 0xFFFF)->len()
enddef
