import assert from "node:assert/strict";
import { test } from "node:test";
import { modelsOf, withModel } from "../src/modellist.ts";
import { readable } from "../src/record.ts";

test("why there is no suggestion", () => {
  const text = readable({ reason: "backend-error", detail: "401", answered: 12.6, explained: "sent: nothing" });
  assert.equal(text, "No suggestion: backend-error (401).\nAnswered after 13 ms\n\nsent: nothing");
});

test("a suggestion", () => {
  const record = { reason: "shown", cache: "miss", backend: "work", first_delta: 3, answered: 5, prompt_tokens: 7, generated_tokens: 2 };
  const lines = ["A suggestion was answered.", "Backend: work", "Cache: miss", "First text after 3 ms", "Answered after 5 ms"];
  assert.equal(readable({ ...record, explained: "sent" }), [...lines, "Tokens: 7 read, 2 written", "", "sent"].join("\n"));
});

test("models that can be brought here, the recommended one first", () => {
  const model = (name: string, repo: string | null, path: string | null) => ({ name, repo, path, size_bytes: 1.64e9, licence: "MIT" });
  const models = [model("in", null, "/x"), model("a", "o/a", "/y"), model("b", "o/b", null)];
  assert.deepEqual(modelsOf({ models, recommended: "b" }), [
    { label: "b", description: "1.6 GB, MIT, suits this machine" },
    { label: "a", description: "1.6 GB, MIT, is here" },
  ]);
});

test("using a model keeps other backends", () => {
  const before = { work: { kind: "ffm" }, local: { kind: "llama-cpp", threads: 2, model: "old" } };
  assert.deepEqual(withModel(before, "new"), { work: { kind: "ffm" }, local: { kind: "llama-cpp", threads: 2, model: "new" } });
  assert.deepEqual(withModel(undefined, "new"), { local: { kind: "llama-cpp", model: "new" } });
});
