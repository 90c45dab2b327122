// The status bar item, and the menu that it opens.
import * as vscode from "vscode";
import type { Kind, Status } from "./status.ts";

const ICONS: Readonly<Record<Kind, string>> = {
  ready: "$(check)",
  thinking: "$(loading~spin)",
  off: "$(circle-slash)",
  error: "$(warning)",
};

export class StatusBar implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private readonly status: Status;

  constructor(status: Status) {
    this.status = status;
    this.item = vscode.window.createStatusBarItem("midfill.status", vscode.StatusBarAlignment.Right, 100);
    this.item.name = "midfill";
    this.item.command = "midfill.menu";
    this.update();
    this.item.show();
  }

  update(): void {
    const kind = this.status.kind();
    const reason = this.status.reason();
    this.item.text = `${ICONS[kind]} midfill`;
    this.item.tooltip = reason === "" ? `midfill: ${kind}` : `midfill: ${kind}, ${reason}`;
    this.item.accessibilityInformation = { label: this.item.tooltip };
    this.item.backgroundColor =
      kind === "error" ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  dispose(): void {
    this.item.dispose();
  }
}

type Entry = vscode.QuickPickItem & { command?: string };

/** Shows what can be done, and does what is chosen. */
export async function menu(status: Status, language: string | undefined): Promise<void> {
  const kind = status.kind();
  const reason = status.reason();
  const entries: Entry[] = [
    {
      label: status.off ? "$(play) Switch Suggestions On" : "$(circle-slash) Switch Suggestions Off",
      command: "midfill.toggleSuggestions",
    },
  ];
  if (language !== undefined) {
    const turn = status.languageOff === undefined ? "$(circle-slash) Switch Suggestions Off" : "$(play) Switch Suggestions On";
    entries.push({ label: `${turn} for ${language}`, command: "midfill.toggleLanguage" });
  }
  entries.push(
    { label: "$(question) Show What Became of the Last Request", command: "midfill.showReason" },
    { label: "$(file-code) Show the Last Prompt", command: "midfill.showPrompt" },
    { label: "$(cloud-download) Download a Model…", command: "midfill.downloadModel" },
    { label: "$(output) Open the Log", command: "midfill.showLog" },
    { label: "$(debug-restart) Restart the Server", command: "midfill.restart" },
  );
  const title = reason === "" ? `midfill: ${kind}` : `midfill: ${kind}, ${reason}`;
  const chosen = await vscode.window.showQuickPick(entries, { title, placeHolder: "What is to be done?" });
  if (chosen?.command !== undefined) {
    await vscode.commands.executeCommand(chosen.command);
  }
}
