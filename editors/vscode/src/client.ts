// The language client: how it is set up, and what is done around its requests.
import { homedir } from "node:os";
import { createInterface } from "node:readline";
import { CancellationTokenSource, type ConfigurationParams, InlineCompletionRequest, MessageType, ShowMessageNotification, type WorkDoneProgressBegin, type WorkDoneProgressEnd, type WorkDoneProgressReport } from "vscode-languageclient";
import { CloseAction, ErrorAction, LanguageClient, type LanguageClientOptions, type Middleware, RevealOutputChannelOn } from "vscode-languageclient/node";
import * as vscode from "vscode";
import type { Reporter } from "./reports.ts";
import type { Tree } from "./settings.ts";
import type { Status } from "./status.ts";

/** Files, new files, cells of notebooks. Output, diffs, settings, search and the like are nobody's code. */
export const SCHEMES: readonly string[] = ["file", "untitled", "vscode-notebook-cell"];

export interface Parts {
  log: vscode.LogOutputChannel;
  status: Status;
  reporter: Reporter;
  settings: () => Tree;
  settingsChanged: () => Promise<void>;
  changed: () => void;
  /** The server can be asked. */
  ready: () => void;
  /** The server ended by itself, or did not start. */
  ended: (client: LanguageClient) => void;
  /** Takes the progress of what the user waits for; false: it is none of that. */
  progress: (token: string, params: WorkDone) => boolean;
}

export type WorkDone = WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd;

/** Its own messages about a server that ends or does not start are for the log: `Parts.ended` says it once. */
class Quiet extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export function createClient(command: string, args: readonly string[], parts: Parts): LanguageClient {
  const options: LanguageClientOptions = {
    documentSelector: SCHEMES.map((scheme) => ({ scheme })),
    outputChannel: parts.log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    stdioOptions: { stdout: () => undefined, stderr: (stream) => { logLines(stream, parts); } },
    middleware: middleware(parts, () => client),
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        parts.ended(client);
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    },
  };
  // Not the workspace: nothing that lies there is to have a say in how the server starts.
  const run = { command, args: [...args], options: { cwd: homedir() } };
  const client: LanguageClient = new Quiet("midfill", "midfill", run, options);
  client.onNotification(ShowMessageNotification.type, ({ type, message }) => {
    if (type === MessageType.Error || type === MessageType.Warning) {
      parts.status.problem = message.replace(/^midfill: /, "");
      parts.changed();
    }
    show(type, message, parts.log);
  });
  return client;
}

function show(type: MessageType, message: string, log: vscode.LogOutputChannel): void {
  const open = "Open the Log";
  const shown =
    type === MessageType.Error
      ? vscode.window.showErrorMessage(message, open)
      : type === MessageType.Warning
        ? vscode.window.showWarningMessage(message, open)
        : vscode.window.showInformationMessage(message);
  void shown.then((choice) => {
    if (choice === open) {
      log.show(true);
    }
  });
}

/** Lines of the server's own log begin with a time and a level. Others say why it does not start. */
function logLines(stream: NodeJS.ReadableStream, { log, status }: Parts): void {
  createInterface({ input: stream, crlfDelay: Infinity }).on("line", (line) => {
    const [, level, text] = /^\S+ \S+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) (.*)$/.exec(line) ?? [];
    if (level === "DEBUG") {
      log.debug(text ?? line);
    } else if (level === "WARNING") {
      log.warn(text ?? line);
    } else if (level === "ERROR" || level === "CRITICAL") {
      log.error(text ?? line);
    } else if (level === "INFO") {
      log.info(text ?? line);
    } else {
      log.info(line);
      status.said = line.trim() || status.said;
    }
  });
}

function middleware({ status, reporter, settings, settingsChanged, changed, ready, progress }: Parts, client: () => LanguageClient): Middleware {
  return {
    provideInlineCompletionItems: async (document, position, context, token, next) => {
      if (status.off) {
        return null;
      }
      const version = document.version;
      status.requests += 1;
      changed();
      try {
        const answer = await next(document, position, context, token);
        const result = status.kind() === "off" ? null : answer; // switched off meanwhile
        reporter.answered(client(), { document, version, position, token }, result);
        return result;
      } finally {
        status.requests = Math.max(0, status.requests - 1);
        changed();
      }
    },
    executeCommand: async (command, args: unknown[], next) => {
      if (command === "midfill.accept") {
        reporter.ended();
      }
      return (await next(command, args)) as unknown;
    },
    handleRegisterCapability: async (params, next) => {
      await next(params, new CancellationTokenSource().token);
      if (params.registrations.some(({ method }) => method === InlineCompletionRequest.method)) {
        ready();
      }
    },
    handleWorkDoneProgress: (token, params, next) => {
      if (params.kind === "begin") {
        status.work.set(String(token), params.title.replace(/^midfill: /, ""));
      } else if (params.kind === "end") {
        status.work.delete(String(token));
      }
      changed();
      if (!progress(String(token), params) || params.kind === "end") {
        next(token, params);
      }
    },
    workspace: {
      configuration: (params: ConfigurationParams) => params.items.map(() => settings()),
      didChangeConfiguration: settingsChanged,
    },
  };
}
