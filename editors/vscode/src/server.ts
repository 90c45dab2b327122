// The life of the server: found, started, restarted, ended.
import { homedir } from "node:os";
import { basename } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type LanguageClient, State } from "vscode-languageclient/node";
import * as vscode from "vscode";
import { createClient, type Parts, SCHEMES, type WorkDone } from "./client.ts";
import { type Found, findServer, installation, type Place } from "./find.ts";
import { type Contributed, contributed, explicit, type Tree } from "./settings.ts";

const START_MS = 2000; // how long one that is to end may still take to start

export class Server implements vscode.Disposable {
  client: LanguageClient | undefined;
  private readonly place: Place;
  private readonly known: readonly Contributed[];
  private readonly parts: Parts;
  private toldMissing = false;
  private missing = false;
  private changing = false;
  private found = ""; // what was started last
  private stops = 0;
  private stopping: Promise<unknown> = Promise.resolve();
  /** The server's program, if it is one that has midfill's commands. */
  program: string | undefined;
  private pulling: { model: string; token?: string; report: (percentage: number) => void } | undefined;

  constructor(context: vscode.ExtensionContext, parts: Omit<Parts, "settings" | "settingsChanged" | "ready" | "ended" | "progress">) {
    this.place = { platform: process.platform, home: homedir(), env: process.env, extension: context.extensionPath };
    this.known = contributed(context.extension.packageJSON as Parameters<typeof contributed>[0]);
    this.parts = {
      ...parts,
      settings: () => this.settings(),
      settingsChanged: () => this.settingsChanged(),
      ready: () => {
        parts.status.started();
        parts.changed();
      },
      progress: (token, params) => this.progress(token, params),
      ended: (client) => { this.ended(client); },
    };
  }

  private find(): Found {
    // Of the user alone: a workspace must not say what is run.
    const setting = vscode.workspace.getConfiguration("midfill").inspect("server.command")?.globalValue;
    return findServer(setting, this.place);
  }

  /** What the user has set here for the server. */
  settings(): Tree {
    const configuration = vscode.workspace.getConfiguration("midfill");
    return explicit(this.known, (path) => configuration.inspect(path), vscode.workspace.isTrusted);
  }

  async start(): Promise<void> {
    const { status, changed, log } = this.parts;
    const found = this.find();
    this.found = JSON.stringify(found);
    this.missing = "missing" in found;
    this.program = "command" in found && /^midfill(\.exe)?$/i.test(basename(found.command)) ? found.command : undefined;
    if ("missing" in found) {
      status.broken = "the server is not installed";
      log.warn(`the server is not installed; looked for ${found.missing.join(", ")}`);
      changed();
      this.tellMissing(found.set);
      return;
    }
    log.info(`starting ${[found.command, ...found.args].join(" ")}`);
    const client = createClient(found.command, found.args, this.parts);
    this.client = client;
    client.onDidChangeState(({ newState }) => {
      if (this.client === client && newState === State.Running) {
        void this.toggled();
        this.focused(vscode.window.activeTextEditor);
      }
    });
    try {
      await client.start();
    } catch (error) {
      log.error(`the server does not start: ${error instanceof Error ? error.message : String(error)}`);
      this.ended(client);
    }
  }

  /** Called once or twice for one server that ended. */
  private ended(client: LanguageClient): void {
    if (this.client !== client) {
      return;
    }
    this.client = undefined;
    const { status, changed, log } = this.parts;
    const again = status.ended();
    changed();
    log.warn(again ? "the server ended, and is started again" : "the server ended too often");
    if (again) {
      void this.start();
    } else {
      this.tellGivenUp();
    }
  }

  /** Whoever has installed the server meanwhile need not do anything more. */
  async startIfInstalled(): Promise<void> {
    if (this.missing) {
      await this.start();
    }
  }

  /** The setting has changed: often it is only read anew. */
  async restartIfMoved(): Promise<void> {
    if (JSON.stringify(this.find()) !== this.found) {
      await this.restart();
    }
  }

  /** Whether it was the last who wanted it so. */
  async stop(): Promise<boolean> {
    const { client } = this;
    this.client = undefined;
    this.stops += 1;
    const mine = this.stops;
    if (client) {
      this.stopping = Promise.all([this.stopping, end(client)]);
    }
    await this.stopping;
    return mine === this.stops;
  }

  /** Wanted several times before the old server has ended, it is one new start. */
  async restart(): Promise<void> {
    if (!(await this.stop())) {
      return;
    }
    this.parts.status.forget();
    this.toldMissing = false;
    this.parts.changed();
    await this.start();
  }

  dispose(): void {
    void this.stop();
  }

  /** What the server answers to a command; undefined if it does not run. */
  async execute(command: string, ...args: unknown[]): Promise<unknown> {
    const { client } = this;
    if (!client?.isRunning()) {
      return undefined;
    }
    return client.sendRequest<unknown>("workspace/executeCommand", { command, arguments: args });
  }

  /** Gives `{path}` or `{error}`. Raises what the server refuses, and cancellation. */
  async pull(model: string, token: vscode.CancellationToken, report: (percentage: number) => void): Promise<unknown> {
    const params = { command: "midfill.pullModel", arguments: [model] };
    this.pulling = { model, report };
    try {
      return await this.client?.sendRequest<unknown>("workspace/executeCommand", params, token);
    } finally {
      this.pulling = undefined;
    }
  }

  /** The server asks for the settings then. */
  async settingsChanged(): Promise<void> {
    if (this.changing) {
      return;
    }
    await this.client?.sendNotification("workspace/didChangeConfiguration", { settings: { midfill: this.settings() } });
  }

  /** Several settings are changed: the server is told when they are complete, as the first alone may be wrong. */
  async together(change: () => Promise<void>): Promise<void> {
    this.changing = true;
    try {
      await change();
    } finally {
      this.changing = false;
      await this.settingsChanged();
    }
  }

  /** Tells the server whether suggestions are wanted. */
  async toggled(): Promise<void> {
    await this.execute("midfill.toggle", !this.parts.status.off);
  }

  focused(editor: vscode.TextEditor | undefined): void {
    if (editor && SCHEMES.includes(editor.document.uri.scheme) && this.client?.isRunning()) {
      const textDocument = { uri: this.client.code2ProtocolConverter.asUri(editor.document.uri) };
      void this.client.sendNotification("textDocument/didFocus", { textDocument }).catch(() => undefined);
    }
  }

  private progress(token: string, params: WorkDone): boolean {
    const { pulling } = this;
    if (!pulling) {
      return false;
    }
    if (params.kind === "begin" && params.title.includes(pulling.model)) {
      pulling.token = token;
    }
    if (pulling.token !== token) {
      return false;
    }
    if (params.kind !== "end" && params.percentage !== undefined) {
      pulling.report(params.percentage);
    }
    return true;
  }

  private tellMissing(set: string | undefined): void {
    if (this.toldMissing) {
      return;
    }
    this.toldMissing = true;
    const { command, where } = installation(this.place);
    const [copy, settings] = ["Copy the Command", "Open Settings"];
    const which = set === undefined ? "" : ` (${set} cannot be run)`;
    const message = `midfill: the server is not installed${which}; ${where}run: ${command}`;
    void vscode.window.showWarningMessage(message, copy, settings).then(async (choice) => {
      if (choice === copy) {
        await vscode.env.clipboard.writeText(command);
      } else if (choice === settings) {
        const query = "midfill.server.command";
        await (vscode.env.remoteName === undefined
          ? vscode.commands.executeCommand("workbench.action.openSettings", query)
          : vscode.commands.executeCommand("workbench.action.openRemoteSettings", { query }));
      }
    });
  }

  private tellGivenUp(): void {
    const { status, log } = this.parts;
    const [restart, open] = ["Restart", "Open the Log"];
    void vscode.window.showErrorMessage(`midfill: ${status.broken ?? ""}`, restart, open).then(async (choice) => {
      if (choice === restart) {
        await this.restart();
      } else if (choice === open) {
        log.show(true);
      }
    });
  }
}

/** Never raises. One that does not answer to `initialize` cannot be asked to stop. */
async function end(client: LanguageClient): Promise<void> {
  if (client.state === State.Starting) {
    await Promise.race([client.start().catch(() => undefined), pause(START_MS)]);
  }
  if (client.state === State.Starting) {
    client.serverProcess?.kill("SIGKILL");
  }
  await client.dispose().catch(() => undefined); // what is left of its processes is killed, too
}
