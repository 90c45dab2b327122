// Models as `midfill models list --json` names them. Must not know VS Code.

/** An entry to choose. */
export interface Listed {
  label: string;
  description: string;
}

interface Model {
  name: string;
  repo: string | null;
  size_bytes: number;
  licence: string;
  path: string | null;
}

/** Those that can be brought here, the recommended one first. Raises TypeError if it is no such list. */
export function modelsOf(json: unknown): Listed[] {
  const { models, recommended } = json as { models: Model[]; recommended?: string };
  return models
    .filter(({ repo }) => repo !== null) // the others come with the server
    .sort((a, b) => Number(b.name === recommended) - Number(a.name === recommended))
    .map(({ name, size_bytes: size, licence, path }) => {
      const remarks = [`${(size / 1e9).toFixed(1)} GB`, licence];
      remarks.push(...(name === recommended ? ["suits this machine"] : []), ...(path === null ? [] : ["is here"]));
      return { label: name, description: remarks.join(", ") };
    });
}

/** The setting `backends` with this model as that of the entry `local`. */
export function withModel(backends: unknown, model: string): object {
  const all = typeof backends === "object" && backends !== null ? backends : {};
  const { local } = all as { local?: unknown };
  return { ...all, local: { ...(typeof local === "object" ? local : {}), kind: "llama-cpp", model } };
}
