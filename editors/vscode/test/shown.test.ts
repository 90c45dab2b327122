import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { type Change, Tracker } from "../src/shown.ts";

let said: string[];
let tracker: Tracker<string>;

beforeEach(() => {
  said = [];
  tracker = new Tracker({
    accepted: (item, length) => said.push(`${item} ${length}`),
    rejected: (item) => said.push(`${item} rejected`),
  });
  show("(a + b)");
});

/** At offset 10, behind `before`. */
function show(text: string, before = ""): void {
  tracker.show({ item: "one", uri: "file", text, start: 10, before });
}

function change(offset: number, removed: number, text: string): Change {
  return { offset, removed, text };
}

function type(offset: number, text: string): void {
  tracker.changed("file", [change(offset, 0, text)], false);
}

test("a part is accepted by a command", async () => {
  await tracker.part(() => { type(10, "(a"); return Promise.resolve(); });
  await tracker.part(() => { type(12, " +"); return Promise.resolve(); });
  assert.deepEqual(said, ["one 2", "one 4"]);
});

test("typing what is suggested accepts nothing, and rejects nothing", () => {
  Array.from("(a + b)").forEach((key, index) => { type(10 + index, key); });
  type(17, "x");
  assert.deepEqual(said, []);
});

test("a command that fails or changes nothing reports nothing, also of what is typed later", async () => {
  await assert.rejects(tracker.part(() => Promise.reject(new Error("no"))));
  await tracker.part(() => Promise.resolve());
  type(10, "(");
  assert.deepEqual(said, []);
});

test("the last part is no part: VS Code runs the item's own command then", async () => {
  await tracker.part(() => { type(10, "(a + b)"); return Promise.resolve(); });
  assert.deepEqual(said, []);
});

test("what another extension suggests is not ours", async () => {
  await tracker.part(() => { type(10, "other"); return Promise.resolve(); });
  assert.deepEqual(said, ["one rejected"]);
});

test("something else that is typed or deleted rejects it", () => {
  type(10, "(");
  type(11, "x");
  show("(a)");
  tracker.changed("file", [change(10, 0, "\n    ")], false);
  show("a", "");
  tracker.changed("file", [change(9, 1, "")], false);
  assert.deepEqual(said, ["one rejected", "one rejected"]); // the last one is a change before it
});

test("going back within what was typed keeps it, going back before that does not", () => {
  show("else:", "el");
  tracker.changed("file", [change(11, 1, "")], false);
  type(11, "l");
  type(12, "x");
  assert.deepEqual(said, ["one rejected"]);
});

test("a bracket that VS Code closes is one key", () => {
  type(10, "()");
  assert.deepEqual(said, []);
  show("[a]");
  type(10, "()");
  assert.deepEqual(said, ["one rejected"]);
});

test("undo, changes elsewhere, several at a time, other files and moves are no rejection", () => {
  const ends = [
    () => { tracker.changed("file", [change(10, 0, "x")], true); },
    () => { type(3, "x"); },
    () => { tracker.changed("file", [change(10, 0, "x"), change(3, 0, "x")], false); },
    () => { tracker.changed("file", [change(10, 2, "x")], false); },
    () => { tracker.moved("file", 11); },
    () => { tracker.moved("other", 10); },
    () => { tracker.show(undefined); },
  ];
  for (const end of ends) {
    show("(a)");
    end();
    type(10, "x");
  }
  assert.deepEqual(said, []);
});

test("changes of another file, or none, change nothing", () => {
  tracker.changed("other", [change(10, 0, "x")], false);
  tracker.changed("file", [], false);
  tracker.moved("file", 10);
  tracker.dismissed();
  tracker.dismissed();
  assert.deepEqual(said, ["one rejected"]);
});

test("a suggestion that takes the place of what stands before the cursor", () => {
  show("    else:", "        ");
  type(18, "x");
  assert.deepEqual(said, ["one rejected"]);
});
