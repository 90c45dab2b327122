// What VS Code calls: puts the parts together, and registers the commands.
import * as vscode from "vscode";
import { SCHEMES } from "./client.ts";
import { Explanations } from "./explain.ts";
import { downloadModel } from "./models.ts";
import { Reporter } from "./reports.ts";
import { Server } from "./server.ts";
import { languageOff, withLanguage } from "./settings.ts";
import { Status } from "./status.ts";
import { menu, StatusBar } from "./statusbar.ts";

const OFF = "off"; // where it is remembered that suggestions are switched off

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("midfill", { log: true });
  const status = new Status();
  status.off = context.globalState.get(OFF, false);
  const bar = new StatusBar(status);
  const reporter = new Reporter(status);
  const running = new Server(context, { log, status, reporter, changed: () => { bar.update(); } });
  server = running;
  const explanations = new Explanations(running);

  const look = () => {
    const language = languageInFront();
    status.languageOff = language !== undefined && languageOff(running.settings(), language) ? language : undefined;
    bar.update();
  };
  context.subscriptions.push(
    log, bar, reporter, explanations, running,
    ...register({
      "midfill.menu": () => menu(status, languageInFront()),
      "midfill.toggleSuggestions": async () => {
        status.off = !status.off;
        bar.update();
        await hide(reporter, status);
        await context.globalState.update(OFF, status.off);
        await running.toggled();
      },
      "midfill.toggleLanguage": async () => {
        await toggleLanguage(status);
        await hide(reporter, status);
      },
      "midfill.showReason": () => explanations.showReason(),
      "midfill.showPrompt": () => explanations.showPrompt(),
      "midfill.showLog": () => { log.show(); },
      "midfill.restart": () => running.restart(),
      "midfill.downloadModel": () => downloadModel(running),
      "midfill.acceptWord": () => reporter.part("editor.action.inlineSuggest.acceptNextWord"),
      "midfill.acceptLine": () => reporter.part("editor.action.inlineSuggest.acceptNextLine"),
      "midfill.dismiss": () => reporter.dismiss(),
    }),
    ...listen(running, look),
  );
  look();
  await running.start();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

function register(commands: Readonly<Record<string, () => unknown>>): vscode.Disposable[] {
  return Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run));
}

/** `look`: which file is in front, or what is set for it, may have changed. */
function listen(running: Server, look: () => void): vscode.Disposable[] {
  return [
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      look();
      running.focused(editor);
      void running.startIfInstalled();
    }),
    vscode.window.onDidChangeWindowState(({ focused }) => {
      if (focused) {
        void running.startIfInstalled();
      }
    }),
    vscode.workspace.onDidOpenTextDocument(look), // also called where a file's language is changed
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      look();
      void running.settingsChanged();
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("midfill.server.command")) {
        void running.restartIfMoved();
      } else if (event.affectsConfiguration("midfill")) {
        look();
      }
    }),
  ];
}

/** What is shown goes away where suggestions were switched off. */
async function hide(reporter: Reporter, status: Status): Promise<void> {
  if (status.kind() === "off") {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    reporter.ended();
  }
}

/** The language of the file in front, if it is one that is asked for. */
function languageInFront(): string | undefined {
  const document = vscode.window.activeTextEditor?.document;
  return document && SCHEMES.includes(document.uri.scheme) ? document.languageId : undefined;
}

/** It is kept in the user's settings. */
async function toggleLanguage(status: Status): Promise<void> {
  const language = languageInFront();
  if (language === undefined) {
    return;
  }
  const configuration = vscode.workspace.getConfiguration("midfill");
  const languages = configuration.inspect("languages")?.globalValue;
  const changed = withLanguage(languages, language, status.languageOff !== undefined);
  await configuration.update("languages", changed, vscode.ConfigurationTarget.Global);
}
