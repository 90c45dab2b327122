// Which settings the server is told. Must not know VS Code.

export type Tree = Record<string, unknown>;

/** One setting of `contributes.configuration`, without the leading `midfill.`. */
export interface Contributed {
  path: string;
  scope: string;
}

/** What VS Code's `inspect` gives; the default is left out on purpose. */
export interface Inspected {
  globalValue?: unknown;
  workspaceValue?: unknown;
}

/** A workspace may switch these off, and never on: `true` would loosen what the user has chosen. */
const ONLY_OFF = new Set(["completion.enabled", "privacy.allowRemote"]);
/** Settings of the extension alone; the server knows none of them. */
const OURS = ["server.", "trace."];

interface Manifest {
  contributes: { configuration: readonly { properties: Readonly<Record<string, { scope?: string }>> }[] };
}

/** The server's settings that the manifest offers. */
export function contributed(manifest: Manifest): Contributed[] {
  return manifest.contributes.configuration
    .flatMap((section) => Object.entries(section.properties))
    .map(([name, { scope }]) => ({ path: name.replace(/^midfill\./, ""), scope: scope ?? "" }))
    .filter(({ path }) => !OURS.some((prefix) => path.startsWith(prefix)));
}

/**
 * The settings that somebody has set, as a tree. Defaults are not in it: VS Code would give one for every setting, and
 * as the editor's settings win, they would take the place of what stands in the user's and the project's files.
 *
 * `trusted`: whether the user trusts the workspace. What names commands, services or keys is never taken from it.
 */
export function explicit(
  settings: readonly Contributed[],
  inspect: (path: string) => Inspected | undefined,
  trusted: boolean,
): Tree {
  const tree: Tree = {};
  for (const setting of settings) {
    const value = chosen(setting, inspect(setting.path) ?? {}, trusted);
    if (value !== undefined && value !== null) {
      put(tree, setting.path.split("."), value);
    }
  }
  return tree;
}

function chosen({ path, scope }: Contributed, { globalValue, workspaceValue }: Inspected, trusted: boolean): unknown {
  if (!trusted || scope !== "window" || workspaceValue === undefined) {
    return globalValue;
  }
  return ONLY_OFF.has(path) && workspaceValue !== false ? globalValue : workspaceValue;
}

function put(tree: Tree, path: readonly string[], value: unknown): void {
  const [first = "", ...rest] = path;
  if (rest.length === 0) {
    tree[first] = value;
    return;
  }
  const below = (tree[first] ??= {}) as Tree;
  put(below, rest, value);
}

/** Whether suggestions for a language are switched off in the settings that the server is told. */
export function languageOff(tree: Tree, language: string): boolean {
  const enabled = at(tree, "languages", language, "enabled") ?? at(tree, "completion", "enabled");
  return enabled === false;
}

/** The setting `languages` with suggestions for one language switched on or off. */
export function withLanguage(languages: unknown, language: string, enabled: boolean): Tree {
  const all = isTree(languages) ? languages : {};
  const one = all[language];
  return { ...all, [language]: { ...(isTree(one) ? one : {}), enabled } };
}

function at(tree: Tree, ...path: string[]): unknown {
  return path.reduce<unknown>((value, name) => (isTree(value) ? value[name] : undefined), tree);
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
