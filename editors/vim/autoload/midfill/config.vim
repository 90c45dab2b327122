vim9script
# What the user may set, in `g:midfill`. Must not start anything.

const KEYS = { # of Insert mode; an empty one is left alone
  accept: '<Tab>',
  accept_word: '<M-w>',
  accept_line: '<M-l>',
  next: '<M-]>',
  previous: '<M-[>',
  dismiss: '<C-]>',
  trigger: '<M-\>',
}
const TYPES = {cmd: v:t_list, settings: v:t_dict, keys: v:t_dict}

export var cmd: list<string> = [] # the server and its arguments; empty: the first `midfill` that is found
export var settings: dict<any> = {} # of the server, as in docs/configuration.md
export var keys: dict<string> = KEYS->copy()

# Take the user's options. Returns what is wrong with them; the rest holds.
export def Read(): string
  cmd = []
  settings = {}
  keys = KEYS->copy()
  var given: any = get(g:, 'midfill', {})
  if type(given) != v:t_dict
    return 'g:midfill must be a dictionary'
  endif
  for [name, value] in items(given)
    if !TYPES->has_key(name)
      return $'no option is called {name}'
    elseif type(value) != TYPES[name]
      return $'{name} must be a {TYPES[name] == v:t_list ? 'list' : 'dictionary'}'
    endif
  endfor
  for [name, value] in items(given->get('keys', {}))
    if !KEYS->has_key(name)
      return $'no option is called keys.{name}'
    elseif type(value) != v:t_string
      return $'keys.{name} must be a string'
    endif
    keys[name] = value
  endfor
  cmd = given->get('cmd', [])->mapnew((_, each) => $'{each}')
  settings = given->get('settings', {})
  return ''
enddef
