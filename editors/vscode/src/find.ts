// Where the server is, and the command that installs it. Must not know VS Code.
import { accessSync, constants, existsSync, realpathSync, statSync } from "node:fs";
import { join, posix, win32 } from "node:path";

export interface Place {
  platform: NodeJS.Platform;
  home: string;
  env: Readonly<Record<string, string | undefined>>;
  /** The folder of this extension; if it lies in a clone of midfill, that clone's own server is found. */
  extension: string;
}

export type Found =
  | { command: string; args: string[] }
  | { missing: string[]; set?: string }; // the places that were looked at; what the setting says

/** The setting is a path, a name on the PATH, or a list of one of them and arguments; `null` if it is not set. */
export function findServer(setting: unknown, place: Place): Found {
  const given = (Array.isArray(setting) ? setting : [setting]).filter((part) => typeof part === "string");
  const [first, ...args] = given;
  if (first !== undefined && first !== "") {
    const command = named(first, place);
    return command === undefined ? { missing: [first], set: first } : { command, args };
  }
  const name = place.platform === "win32" ? "midfill.exe" : "midfill";
  const path = pathOf(place);
  const scripts = place.platform === "win32" ? "Scripts" : "bin";
  const clone = cloneOf(place.extension);
  const tried = [
    ...(clone === undefined ? [] : [path.join(clone, ".venv", scripts, name)]),
    path.join(place.home, ".local", "bin", name), // uv tool and pipx, on Windows too
    ...(place.env["UV_TOOL_BIN_DIR"] ? [path.join(place.env["UV_TOOL_BIN_DIR"], name)] : []),
    ...(place.env["PIPX_BIN_DIR"] ? [path.join(place.env["PIPX_BIN_DIR"], name)] : []),
  ];
  const command = onPath("midfill", place) ?? tried.find(runnable);
  return command === undefined ? { missing: ["PATH", ...tried] } : { command, args: [] };
}

/** The command that installs the server, and where it is to be run: empty for anywhere. */
export function installation(place: Place): { command: string; where: string } {
  const tool = onPath("uv", place) === undefined ? "pipx install" : "uv tool install";
  const clone = cloneOf(place.extension);
  return { command: `${tool} "${clone ?? "."}[local]"`, where: clone === undefined ? "in a clone of midfill " : "" };
}

/** The clone of midfill that the extension lies in: it was not installed, but is run from its sources. */
function cloneOf(extension: string): string | undefined {
  let here = extension;
  try {
    here = realpathSync(extension);
  } catch {
    // it stays as it was given
  }
  const clone = join(here, "..", "..");
  const is = join(clone, "editors", "vscode") === here && existsSync(join(clone, "pyproject.toml"));
  return is ? clone : undefined;
}

function named(first: string, place: Place): string | undefined {
  const path = pathOf(place);
  const whole = /^~[/\\]/.test(first) ? path.join(place.home, first.slice(2)) : first;
  if (path.isAbsolute(whole)) {
    return runnable(whole) ? whole : undefined;
  }
  // A relative path would mean something else in each folder that is opened.
  return /[/\\]/.test(whole) ? undefined : onPath(whole, place);
}

function onPath(name: string, place: Place): string | undefined {
  const path = pathOf(place);
  const windows = place.platform === "win32";
  const value = windows
    ? Object.entries(place.env).find(([key]) => key.toUpperCase() === "PATH")?.[1]
    : place.env["PATH"];
  const full = windows && !name.toLowerCase().endsWith(".exe") ? `${name}.exe` : name;
  return (value ?? "")
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder)) // others depend on the folder one is in
    .map((folder) => path.join(folder, full))
    .find(runnable);
}

function pathOf(place: Place): typeof posix {
  return place.platform === "win32" ? win32 : posix;
}

function runnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
