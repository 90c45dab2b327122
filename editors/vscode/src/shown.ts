// The suggestion that is shown, and what becomes of it as the document changes. Must not know VS Code.

/** Offsets are those of the document, in UTF-16 units. */
export interface Shown<Item> {
  item: Item;
  uri: string;
  /** The item's text, with the document's line ends. */
  text: string;
  /** Where the text begins. */
  start: number;
  /** What stands between `start` and the cursor. */
  before: string;
}

export interface Change {
  offset: number;
  removed: number;
  text: string;
}

export interface Reports<Item> {
  accepted(item: Item, length: number): void;
  rejected(item: Item): void;
}

/**
 * VS Code tells an extension neither that a suggestion was dropped nor that a part of it was accepted. Both are seen in
 * how the document changes, by these rules:
 *
 * - A part is accepted if text of the suggestion came while one of our commands for parts ran. Typed text never counts.
 * - It is rejected if something else is typed or deleted at the cursor, or by our command.
 * - A move of the cursor, undo, a change elsewhere or a newer suggestion end it without a word.
 */
export class Tracker<Item> {
  private shown: Shown<Item> | undefined;
  private accepting = false;
  private readonly reports: Reports<Item>;

  constructor(reports: Reports<Item>) {
    this.reports = reports;
  }

  show(shown: Shown<Item> | undefined): void {
    this.shown = shown;
  }

  /** The cursor moved or the file is another one: nothing is shown there any more. */
  moved(uri: string, offset: number): void {
    const { shown } = this;
    if (shown && (shown.uri !== uri || offset !== shown.start + shown.before.length)) {
      this.shown = undefined;
    }
  }

  changed(uri: string, changes: readonly Change[], undone: boolean): void {
    const { shown } = this;
    if (shown?.uri !== uri || changes.length === 0) {
      return;
    }
    const [change] = changes;
    const before = !undone && changes.length === 1 && change ? typed(shown, change) : undefined;
    if (before === undefined) {
      this.shown = undefined;
    } else if (shown.text.startsWith(before) && before.length < shown.text.length) {
      const more = before.length > shown.before.length;
      shown.before = before;
      if (this.accepting && more) {
        this.reports.accepted(shown.item, before.length);
      }
    } else {
      this.shown = undefined;
      if (otherwise(shown, before)) {
        this.reports.rejected(shown.item);
      }
    }
  }

  /** What changes while `command` runs is a part that the user accepts. */
  async part(command: () => PromiseLike<unknown>): Promise<void> {
    this.accepting = true;
    try {
      await command();
    } finally {
      this.accepting = false;
    }
  }

  dismissed(): void {
    const { shown } = this;
    this.shown = undefined;
    if (shown) {
      this.reports.rejected(shown.item);
    }
  }
}

/** What stands between the suggestion's start and the cursor after a change there; undefined if it was elsewhere. */
function typed<Item>(shown: Shown<Item>, change: Change): string | undefined {
  const cursor = shown.start + shown.before.length;
  if (change.removed === 0 && change.offset === cursor && change.text !== "") {
    return shown.before + change.text;
  }
  if (change.text === "" && change.offset + change.removed === cursor && change.offset >= shown.start) {
    return shown.before.slice(0, change.offset - shown.start);
  }
  return undefined;
}

/** Whether it is something else than the beginning of the suggestion, going by the first character that was typed. */
function otherwise<Item>(shown: Shown<Item>, before: string): boolean {
  const first = before.slice(0, shown.before.length + 1); // brackets are closed by VS Code: two characters for one key
  return !shown.text.startsWith(first);
}
