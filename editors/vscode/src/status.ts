// What midfill is doing, as the status bar says it. Must not know VS Code.

export type Kind = "ready" | "thinking" | "off" | "error";

/** How often in a row, without a suggestion in between, a server that ended is started again. */
export const MOST_RESTARTS = 3;

export class Status {
  /** Suggestions are switched off by the user, in every language. */
  off = false;
  /** The language of the file in front is switched off. */
  languageOff: string | undefined;
  running = false;
  /** Why the server cannot run. */
  broken: string | undefined;
  /** The last line that the server wrote and that is none of its log. */
  said = "";
  /** The last warning of the server. */
  problem: string | undefined;
  /** Requests under way. */
  requests = 0;
  /** Work of the server such as loading a model: its title, by the token of its progress. */
  readonly work = new Map<string, string>();
  private ends = 0;

  kind(): Kind {
    if (this.off || this.languageOff !== undefined) {
      return "off";
    }
    if (this.broken !== undefined) {
      return "error";
    }
    if (!this.running || this.work.size > 0 || this.requests > 0) {
      return "thinking";
    }
    return this.problem === undefined ? "ready" : "error";
  }

  /** The reason for what `kind` says; empty if there is none to give. */
  reason(): string {
    if (this.off) {
      return "suggestions are switched off";
    }
    if (this.languageOff !== undefined) {
      return `suggestions are switched off for ${this.languageOff}`;
    }
    if (this.broken !== undefined) {
      return this.broken;
    }
    if (!this.running) {
      return "the server is starting";
    }
    const [working] = this.work.values();
    return working ?? (this.requests > 0 ? "" : (this.problem ?? ""));
  }

  started(): void {
    this.running = true;
    this.broken = undefined;
    this.requests = 0;
    this.work.clear();
  }

  /** The server ended by itself. Returns whether it is to be started again. */
  ended(): boolean {
    this.running = false;
    this.requests = 0;
    this.work.clear();
    this.ends += 1;
    if (this.ends <= MOST_RESTARTS) {
      return true;
    }
    this.broken = `the server ended ${this.ends} times in a row${this.said === "" ? "" : `: ${this.said}`}`;
    return false;
  }

  /** The user wants a new start: nothing of the server before counts. */
  forget(): void {
    this.running = false;
    this.broken = undefined;
    this.problem = undefined;
    this.said = "";
    this.ends = 0;
    this.requests = 0;
    this.work.clear();
  }

  /** A suggestion was shown: all is well. */
  shown(): void {
    this.problem = undefined;
    this.ends = 0;
  }
}
