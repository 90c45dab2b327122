// Shows what became of the last request and what was sent for it, in documents that are kept nowhere.
import * as vscode from "vscode";
import { readable, type Record } from "./record.ts";
import type { Server } from "./server.ts";

const SCHEME = "midfill";

export class Explanations implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly server: Server;
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration: vscode.Disposable;
  readonly onDidChange = this.changed.event;

  constructor(server: Server) {
    this.server = server;
    this.registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  async showReason(): Promise<void> {
    const record = await this.last();
    if (record) {
      await this.show("last request.txt", readable(record));
    }
  }

  async showPrompt(): Promise<void> {
    const record = await this.last();
    if (record?.prompt) {
      await this.show("last prompt.txt", record.prompt);
    } else if (record) {
      void vscode.window.showInformationMessage("midfill: nothing was sent, or it is no longer remembered");
    }
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }

  /** The last request for the file in front; where none is, the last one of all. */
  private async last(): Promise<Record | undefined> {
    const document = vscode.window.activeTextEditor?.document;
    const known = document && document.uri.scheme !== SCHEME ? [document.uri.toString()] : [];
    const records = (await this.server.execute("midfill.explain", ...known)) as Record[] | undefined;
    const [record] = records ?? [];
    if (!record) {
      const why = records ? "nothing was asked for here yet" : "the server is not running";
      void vscode.window.showInformationMessage(`midfill: ${why}`);
    }
    return record;
  }

  private async show(name: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}` });
    this.texts.set(uri.path, text);
    this.changed.fire(uri);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
  }
}
