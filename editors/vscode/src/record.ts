// A record of the server's `midfill.explain`, to be read. Must not know VS Code.

/** Times are in ms from receipt; `null`: it did not come to that. */
export interface Record {
  reason?: string | null;
  detail?: string | null;
  cache?: string | null;
  backend?: string | null;
  failures?: unknown;
  answered?: number | null;
  first_delta?: number | null;
  prompt_tokens?: number | null;
  generated_tokens?: number | null;
  explained?: string;
  prompt?: string | null;
}

/** What became of the request, and what was sent for it. */
export function readable(record: Record): string {
  const { reason, detail, cache, backend, first_delta: first, answered, generated_tokens: written } = record;
  const lines = [
    reason === "shown" || !reason ? "A suggestion was answered." : `No suggestion: ${reason}${detail ? ` (${detail})` : ""}.`,
    backend ? `Backend: ${backend}` : "",
    cache ? `Cache: ${cache}` : "",
    typeof first === "number" ? `First text after ${Math.round(first)} ms` : "",
    typeof answered === "number" ? `Answered after ${Math.round(answered)} ms` : "",
    record.prompt_tokens ? `Tokens: ${record.prompt_tokens} read, ${written ?? 0} written` : "",
    "",
    record.explained ?? "",
  ];
  return lines.filter((line, index) => line !== "" || index === lines.length - 2).join("\n");
}
