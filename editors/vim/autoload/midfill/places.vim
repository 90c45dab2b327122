vim9script
# Where the server, projects and files are. Must not start anything.

import autoload 'midfill/config.vim'

const ROOT_MARKERS = ['.midfill.toml', '.git', '.hg', 'pyproject.toml', 'package.json', 'Cargo.toml', 'go.mod']
# The folder of the plugin's repository, if it lies in one.
const ABOVE = resolve(expand('<sfile>:p'))->fnamemodify(':h:h:h:h:h')

# The command, and where it was looked for; empty if it was not found.
export def Command(): list<list<string>>
  if !config.cmd->empty()
    return [config.cmd, [config.cmd[0]]]
  endif
  var name = has('win32') ? 'midfill.exe' : 'midfill'
  var tried = ['midfill', $'{ABOVE}/.venv/{has('win32') ? 'Scripts' : 'bin'}/{name}', expand($'~/.local/bin/{name}')]
  for path in tried
    var found = exepath(path)
    if found !=# ''
      return [[found], tried]
    endif
  endfor
  return [[], tried]
enddef

# How to install the server: the end of a sentence.
export def Installation(): string
  var tool = executable('uv') ? 'uv tool install' : 'pipx install'
  if filereadable($'{ABOVE}/pyproject.toml')
    return $'run: {tool} "{ABOVE}[local]"'
  endif
  return $'in a clone of midfill run: {tool} ".[local]"'
enddef

# Of an absolute path, as a URI.
export def Uri(path: string): string
  if path =~# '^\a\a\+://'
    return path
  endif
  var slashed = has('win32') ? path->tr('\', '/') : path
  var encoded = slashed->substitute('[^A-Za-z0-9/._~-]', (found) =>
    range(strlen(found[0]))->map((_, at) => printf('%%%02X', char2nr(strpart(found[0], at, 1))))->join(''), 'g')
  return 'file://' .. (encoded[0] ==# '/' ? '' : '/') .. encoded
enddef

# The folder of the project that holds this file; empty if there is none.
export def Root(path: string): string
  var folder = fnamemodify(path, ':p:h')
  while true
    for marker in ROOT_MARKERS
      if getftype($'{folder}/{marker}') !=# ''
        return folder
      endif
    endfor
    var parent = fnamemodify(folder, ':h')
    if parent ==# folder
      return ''
    endif
    folder = parent
  endwhile
  return ''
enddef

export def Folder(root: string): dict<string>
  return {uri: Uri(root), name: root}
enddef
