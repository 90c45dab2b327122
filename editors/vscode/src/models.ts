// Brings a local model here, through the server, and shows how far it is.
import * as vscode from "vscode";
import type { Server } from "./server.ts";
import type { Status } from "./status.ts";

interface Pulled {
  path?: string;
  error?: string;
}

export async function downloadModel(server: Server, status: Status): Promise<void> {
  if (!server.client?.isRunning()) {
    void vscode.window.showWarningMessage(`midfill: the server is not running${status.broken ? `: ${status.broken}` : ""}`);
    return;
  }
  const name = await vscode.window.showInputBox({
    title: "midfill: Download a Model",
    prompt: "A name that `midfill models list` prints, or owner/repository:file.gguf",
    placeHolder: "qwen2.5-coder-1.5b",
    ignoreFocusOut: true,
  });
  if (!name) {
    return;
  }
  const options = { location: vscode.ProgressLocation.Notification, title: `midfill: ${name}`, cancellable: true };
  await vscode.window.withProgress(options, async (_progress, token) => {
    try {
      const pulled = (await server.pull(name, token)) as Pulled;
      if (pulled.path === undefined) {
        void vscode.window.showErrorMessage(`midfill: ${pulled.error ?? "the model did not come"}`);
      } else {
        void vscode.window.showInformationMessage(`midfill: ${name} is here: ${pulled.path}`);
      }
    } catch (error) {
      if (!token.isCancellationRequested) {
        void vscode.window.showErrorMessage(`midfill: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  });
}
