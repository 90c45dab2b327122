// Brings a local model here, through the server, and shows how far it is.
import { execFile } from "node:child_process";
import { homedir } from "node:os";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { type Listed, modelsOf, withModel } from "./modellist.ts";
import type { Server } from "./server.ts";

const LIST_MS = 20_000; // the longest that `midfill models list` may take
const OTHER = "Another one…";

interface Pulled {
  path?: string;
  error?: string;
}

export async function downloadModel(server: Server): Promise<void> {
  if (!server.client?.isRunning()) {
    void vscode.window.showWarningMessage("midfill: the server is not running");
    return;
  }
  const name = await choose(server.program);
  if (!name) {
    return;
  }
  const options = { location: vscode.ProgressLocation.Notification, title: `midfill: ${name}`, cancellable: true };
  const pulled = await vscode.window.withProgress(options, async (progress, token) => {
    let before = 0;
    try {
      return await server.pull(name, token, (percentage) => {
        progress.report({ increment: percentage - before, message: `${percentage} %` });
        before = percentage;
      }) as Pulled;
    } catch (error) {
      return token.isCancellationRequested ? undefined : { error: error instanceof Error ? error.message : String(error) };
    }
  });
  if (pulled?.path !== undefined) {
    await offer(server, name);
  } else if (pulled) {
    void vscode.window.showErrorMessage(`midfill: ${pulled.error ?? "the model did not come"}`);
  }
}

/** One of the models that the server knows by name, or what the user types. */
async function choose(program: string | undefined): Promise<string | undefined> {
  const listed = program === undefined ? [] : await list(program);
  const title = "midfill: Download a Model";
  if (listed.length > 0) {
    const chosen = await vscode.window.showQuickPick([...listed, { label: OTHER }], { title, matchOnDescription: true });
    if (chosen?.label !== OTHER) {
      return chosen?.label;
    }
  }
  return vscode.window.showInputBox({
    title,
    prompt: "A name that `midfill models list` prints, or owner/repository:file.gguf",
    placeHolder: "qwen2.5-coder-1.5b",
    ignoreFocusOut: true,
  });
}

/** Empty if the server cannot be asked. */
async function list(program: string): Promise<Listed[]> {
  try {
    const options = { cwd: homedir(), timeout: LIST_MS, windowsHide: true };
    const { stdout } = await promisify(execFile)(program, ["models", "list", "--json"], options);
    return modelsOf(JSON.parse(stdout));
  } catch {
    return [];
  }
}

async function offer(server: Server, name: string): Promise<void> {
  const use = "Use It";
  const choice = await vscode.window.showInformationMessage(`midfill: the model ${name} is here`, use);
  if (choice === use) {
    const configuration = vscode.workspace.getConfiguration("midfill");
    const backends = withModel(configuration.inspect("backends")?.globalValue, name);
    await server.together(async () => {
      await configuration.update("backends", backends, vscode.ConfigurationTarget.Global);
      await configuration.update("backend", "local", vscode.ConfigurationTarget.Global);
    });
  }
}
