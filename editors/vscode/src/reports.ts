// Tells the server what became of its suggestions.
import type { LanguageClient } from "vscode-languageclient/node";
import * as vscode from "vscode";
import { Tracker } from "./shown.ts";
import type { Status } from "./status.ts";

export interface Asked {
  document: vscode.TextDocument;
  version: number;
  position: vscode.Position;
  token: vscode.CancellationToken;
}

type Answer = vscode.InlineCompletionItem[] | vscode.InlineCompletionList | null | undefined;

/** An item as it came from the server. */
interface Item {
  insertText: string;
  range: unknown;
  command: { title: string; command: string; arguments: unknown[] };
}

export class Reporter implements vscode.Disposable {
  private readonly tracker: Tracker<Item>;
  private readonly status: Status;
  private readonly listeners: vscode.Disposable[];
  private client: LanguageClient | undefined;

  constructor(status: Status) {
    this.status = status;
    this.tracker = new Tracker<Item>({
      accepted: (item, acceptedLength) => {
        this.notify("textDocument/didPartiallyAcceptCompletion", { item, acceptedLength });
      },
      rejected: (item) => {
        const [id] = item.command.arguments;
        void vscode.commands.executeCommand("midfill.reject", id).then(undefined, () => undefined);
      },
    });
    this.listeners = [
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges, reason }) => {
        const changes = contentChanges.map((c) => ({ offset: c.rangeOffset, removed: c.rangeLength, text: c.text }));
        this.tracker.changed(document.uri.toString(), changes, reason !== undefined);
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor, selections }) => {
        const [selection] = selections;
        if (textEditor === vscode.window.activeTextEditor && selection) {
          const { document } = textEditor;
          this.tracker.moved(document.uri.toString(), document.offsetAt(selection.active));
        }
      }),
    ];
  }

  dispose(): void {
    for (const listener of this.listeners) {
      listener.dispose();
    }
  }

  /**
   * Only extensions with a proposed API are told that a suggestion is shown. What can be known is that the answer came in
   * time: not cancelled, for this version of the text and this place of the cursor. Then VS Code shows its first item.
   */
  answered(client: LanguageClient, { document, version, position, token }: Asked, answer: Answer): void {
    this.client = client;
    const editor = vscode.window.activeTextEditor;
    const current =
      !token.isCancellationRequested &&
      document.version === version &&
      editor?.document === document &&
      editor.selection.active.isEqual(position);
    if (!current) {
      return;
    }
    const [first] = (Array.isArray(answer) ? answer : answer?.items) ?? [];
    if (!first?.command || !first.range) {
      this.tracker.show(undefined);
      return;
    }
    const { insertText, range, command } = first;
    const text = typeof insertText === "string" ? insertText : insertText.value;
    const item: Item = {
      insertText: text,
      range: client.code2ProtocolConverter.asRange(range),
      command: { title: command.title, command: command.command, arguments: (command.arguments ?? []) as unknown[] },
    };
    const end = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
    this.tracker.show({
      item,
      uri: document.uri.toString(),
      text: text.replace(/\r\n|\r|\n/g, end),
      start: document.offsetAt(range.start),
      before: document.getText(new vscode.Range(range.start, position)),
    });
    this.status.shown();
    this.notify("textDocument/didShowCompletion", { item });
  }

  /** Nothing is shown any more, and nothing is to be said of it: it was accepted, or suggestions are switched off. */
  ended(): void {
    this.tracker.show(undefined);
  }

  /** Runs VS Code's command for accepting a part. */
  async part(command: string): Promise<void> {
    await this.tracker.part(() => vscode.commands.executeCommand(command));
  }

  async dismiss(): Promise<void> {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    this.tracker.dismissed();
  }

  private notify(method: string, params: object): void {
    void this.client?.sendNotification(method, params).catch(() => undefined); // the server has just ended
  }
}
