vim9script
# The server's process and what it is told. Must not know documents, nor what is on the screen.

import autoload 'midfill/config.vim'
import autoload 'midfill/places.vim'

const MOST_RESTARTS = 3 # in a row, without a suggestion in between
const MOST_LOGGED = 500 # lines of the server's log that are kept
const KILL_MS = 2000 # after which a server that was told to end is killed
const INVOKED = 1 # triggers of LSP 3.18; the draft before it counted from 0
const AUTOMATIC = 2
const CAPABILITIES = {
  general: {positionEncodings: ['utf-32']}, # what |strchars()| counts
  window: {workDoneProgress: true},
  workspace: {workspaceFolders: true, configuration: false},
  textDocument: {synchronization: {didSave: true}, inlineCompletion: {}},
}

var job: job
var running = false
var initialized = false
var generation = 0 # of the server; what older ones say is void
var stopping = false # the user wants it to end
var restarts = 0 # since the last suggestion
var told_missing = false
var folders: list<string> = [] # that the server knows
var waiting: dict<func> = {} # by the id of the request
var lines: list<string> = [] # of its log
var OnReady: func() # it may be told of documents
var OnEnd: func() # it has gone

export var off = false # by the user
export var problem = '' # the last warning of the server
export var busy = '' # what the server is doing, such as loading a model

def Nothing(_: any)
enddef

export def SetHandlers(Ready: func(), End: func())
  OnReady = Ready
  OnEnd = End
enddef

export def SetOff(value: bool)
  off = value
enddef

export def Ready(): bool
  return initialized
enddef

export def Running(): bool
  return running
enddef

export def Log(): list<string>
  return lines->copy()
enddef

# The state has changed: a status line that shows it is drawn anew.
export def Changed()
  if stridx(&statusline, 'midfill') >= 0
    redrawstatus!
  endif
enddef

# Nothing stands between the user and the text: the message is shown in a window that goes by itself, or cut.
export def Tell(message: string, group: string)
  var text = message->substitute('\_s\+', ' ', 'g')
  execute $'echohl {group}'
  if has('patch-9.0.0321')
    echowindow text
  else
    echomsg strcharpart(text, 0, max([&columns - 20, 20]))
  endif
  echohl None
enddef

# The server is to know the project of this file; it is started if it does not run. Returns whether it may be told more.
export def Attach(path: string): bool
  if stopping || restarts > MOST_RESTARTS
    return false
  endif
  if !running
    Start(places.Root(path))
    return false
  endif
  var root = places.Root(path)
  if initialized && root !=# '' && index(folders, root) < 0
    folders->add(root)
    Notify('workspace/didChangeWorkspaceFolders', {event: {added: [places.Folder(root)], removed: []}})
  endif
  return initialized
enddef

def Start(root: string)
  var [command, _] = places.Command()
  if command->empty() || !executable(command[0])
    problem = 'the server is not installed'
    if !told_missing
      told_missing = true
      var missing = command->empty() ? '' : $' ({command[0]} cannot be run)'
      Tell($'midfill: the server is not installed{missing}; {places.Installation()}', 'WarningMsg')
    endif
    return
  endif
  generation += 1
  var mine = generation
  problem = ''
  folders = root ==# '' ? [] : [root]
  job = job_start([exepath(command[0])] + command[1 :], {
    cwd: isdirectory(expand('~')) ? expand('~') : getcwd(), # not one that may hold a program or a module of this name
    in_mode: 'lsp',
    out_mode: 'lsp',
    err_mode: 'nl',
    noblock: 1,
    stoponexit: 'term',
    out_cb: (_, message) => Received(mine, message),
    err_cb: (_, line) => Logged(line),
    exit_cb: (_, code) => Ended(mine, code),
  })
  running = true
  if job_status(job) ==# 'fail'
    Ended(mine, -1)
    return
  endif
  Request('initialize', {
    processId: getpid(),
    clientInfo: {name: 'Vim', version: $'{v:versionlong / 1000000}.{v:versionlong / 10000 % 100}.{v:versionlong % 10000}'},
    rootUri: root ==# '' ? null : places.Uri(root),
    workspaceFolders: root ==# '' ? null : [places.Folder(root)],
    initializationOptions: config.settings,
    capabilities: CAPABILITIES,
    trace: 'off',
  }, (answer) => Initialized(answer))
enddef

def Initialized(answer: dict<any>)
  if answer->has_key('error')
    var error: any = answer.error
    problem = type(error) == v:t_dict && error->has_key('message') ? $'{error.message}' : 'the server cannot be used'
    Tell($'midfill: {problem}', 'ErrorMsg')
    Changed()
    return
  endif
  initialized = true
  Notify('initialized', {})
  if off
    Execute('midfill.toggle', [false])
  endif
  OnReady()
  Changed()
enddef

def Logged(line: string)
  lines->add(line)
  if len(lines) > MOST_LOGGED
    lines->remove(0)
  endif
enddef

def Forget()
  running = false
  initialized = false
  waiting = {}
  folders = []
  busy = ''
  OnEnd()
enddef

def Ended(mine: number, code: number)
  if mine != generation || !running
    return
  endif
  var signal = job_info(job)->get('termsig', '')
  Forget()
  if stopping || v:dying > 0 || v:exiting != null
    return
  endif
  restarts += 1
  var ending = $'the server ended with code {code}' .. (signal ==# '' ? '' : $', signal {signal}')
  if restarts > MOST_RESTARTS
    problem = $'{ending}, {restarts} times in a row'
    Tell($'midfill: {problem}; see :Midfill log, then :Midfill restart', 'ErrorMsg')
  else
    Tell($'midfill: {ending}, and is started again', 'WarningMsg')
    Start(places.Root(expand('%:p')))
  endif
  Changed()
enddef

# End the server; `again`: what follows may start it anew.
export def Stop(again: bool)
  stopping = !again
  restarts = 0
  problem = ''
  told_missing = false
  if !running
    return
  endif
  var old = job
  if initialized
    Request('shutdown', null, Nothing)
    Notify('exit', null)
  endif
  timer_start(KILL_MS, (_) => {
    job_stop(old, 'kill')
  })
  generation += 1
  Forget()
enddef

# Messages ------------------------------------------------------------------------------------------------------------

# What is sent to a server that has just gone is lost, which its end makes known.
def Send(method: string, params: any, options: dict<any>): dict<any>
  if !running || ch_status(job) !=# 'open'
    return {}
  endif
  try
    return ch_sendexpr(job, params == null ? {method: method} : {method: method, params: params}, options)
  catch /^Vim\%((\S\+)\)\=:E\%(630\|631\|906\):/
    return {}
  endtry
  return {}
enddef

# Returns the request's id, 0 if it cannot be asked. `Answered` gets the whole answer.
export def Request(method: string, params: any, Answered: func): number
  var mine = generation
  var id = Send(method, params, {callback: (_, answer) => Received(mine, answer)})->get('id', 0)
  if id != 0
    waiting[id] = Answered
  endif
  return id
enddef

export def Notify(method: string, params: any)
  Send(method, params, {})
enddef

export def Cancel(id: number)
  if waiting->has_key(id)
    Notify('$/cancelRequest', {id: id})
  endif
enddef

# Vim hands a request of the server to the one who waits for an answer of the same number; hence one way in for all.
def Received(mine: number, message: any)
  if mine != generation || type(message) != v:t_dict
    return
  endif
  try
    Take(message)
  catch /^Vim\%((\S\+)\)\=:E/ # it is none that a server should send: the user is not to be kept from typing
    Logged($'not understood by Vim: {v:exception}')
  endtry
enddef

def Take(message: dict<any>)
  if message->has_key('method')
    if message->has_key('id')
      Asked(message)
    else
      Told(message.method, message->get('params', {}))
    endif
  elseif waiting->has_key(message->get('id', 0))
    var Answered = waiting->remove(message.id)
    Answered(message)
  endif
enddef

# A request of the server. |ch_sendexpr()| sends no answer to one whose id is a string.
def Asked(message: dict<any>)
  var params: any = message->get('params', {})
  var answer: dict<any> = {jsonrpc: '2.0', id: message.id}
  if message.method ==# 'workspace/configuration'
    answer.result = params.items->mapnew((_, item) => item->get('section', '') ==# 'midfill' ? config.settings : null)
  elseif message.method ==# 'workspace/workspaceFolders'
    answer.result = folders->mapnew((_, root) => places.Folder(root))
  elseif index(['client/registerCapability', 'client/unregisterCapability', 'window/workDoneProgress/create',
      'window/showMessageRequest'], message.method) >= 0
    answer.result = null
  else
    answer.error = {code: -32601, message: 'not known here'}
  endif
  var body = json_encode(answer)
  ch_sendraw(job, $"Content-Length: {strlen(body)}\r\n\r\n{body}")
enddef

def Told(method: string, params: any)
  if method ==# 'window/showMessage'
    if params.type <= 2
      problem = params.message
    endif
    Tell(params.message, params.type == 1 ? 'ErrorMsg' : params.type == 2 ? 'WarningMsg' : 'None')
    Changed()
  elseif method ==# '$/progress' && type(params.value) == v:t_dict
    if params.value.kind ==# 'begin'
      busy = params.value->get('title', '')->substitute('^midfill: ', '', '')
    elseif params.value.kind ==# 'end'
      busy = ''
    endif
    Changed()
  endif
enddef

# Reports -------------------------------------------------------------------------------------------------------------

export def Execute(name: string, arguments: list<any>, Answered: func = Nothing)
  if initialized
    Request('workspace/executeCommand', {command: name, arguments: arguments}, Answered)
  endif
enddef

def Tally(item: dict<any>): list<any>
  var command: any = item->get('command', null)
  var arguments: any = type(command) == v:t_dict && command->has_key('command') ? command->get('arguments', []) : []
  return type(arguments) == v:t_list ? arguments : []
enddef

export def Shown(item: dict<any>)
  restarts = 0
  problem = ''
  Notify('textDocument/didShowCompletion', {item: item})
enddef

export def Accepted(item: dict<any>)
  if !Tally(item)->empty()
    Execute(item.command.command, item.command.arguments)
  endif
enddef

# `length`: UTF-16 units from the beginning of the item's text.
export def AcceptedPart(item: dict<any>, length: number)
  Notify('textDocument/didPartiallyAcceptCompletion', {item: item, acceptedLength: length})
enddef

export def Rejected(item: dict<any>)
  var arguments = Tally(item)
  if !arguments->empty()
    Execute('midfill.reject', [arguments[0]])
  endif
enddef

# Ask for suggestions. `Answered` gets them, nothing where there was an error. Returns the request's id, or 0.
export def Ask(uri: string, position: dict<number>, by_hand: bool, Answered: func): number
  var params = {
    textDocument: {uri: uri},
    position: position,
    context: {triggerKind: by_hand ? INVOKED : AUTOMATIC},
  }
  return Request('textDocument/inlineCompletion', params, (answer) => {
    var result: any = answer->get('result', null)
    Answered(type(result) == v:t_dict ? result->get('items', []) : type(result) == v:t_list ? result : [])
  })
enddef
