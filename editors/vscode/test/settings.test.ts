import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contributed, explicit, type Inspected, languageOff, withLanguage } from "../src/settings.ts";

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as Parameters<typeof contributed>[0];
const known = contributed(manifest);

function told(values: Record<string, Inspected>, trusted = true): unknown {
  return explicit(known, (path) => values[path], trusted);
}

test("the manifest's settings but those of the extension", () => {
  const paths = known.map(({ path }) => path);
  assert.ok(paths.includes("completion.debounceMs") && paths.includes("backends"));
  assert.deepEqual(paths.filter((path) => /^(server|trace)\./.test(path)), []);
});

test("nothing is told where nothing is set: defaults would win over the user's files", () => {
  const all = Object.fromEntries(known.map(({ path }) => [path, { defaultValue: 1 } as Inspected]));
  assert.deepEqual(told(all), {});
});

test("what is set is told, as a tree; null is not set", () => {
  const values = { backend: { globalValue: ["a"] }, "completion.debounceMs": { globalValue: 0 }, hedgeMs: { globalValue: null } };
  assert.deepEqual(told(values), { backend: ["a"], completion: { debounceMs: 0 } });
});

test("a workspace wins where it may, if it is trusted", () => {
  const values = { "completion.maxLines": { globalValue: 5, workspaceValue: 9 } };
  assert.deepEqual(told(values), { completion: { maxLines: 9 } });
  assert.deepEqual(told(values, false), { completion: { maxLines: 5 } });
});

test("a workspace names no services, commands, keys, files, and does not bring back what was left out", () => {
  const evil = ["backend", "backends", "hedgeMs", "languages", "context.sources", "completion.speculate"];
  const privacy = ["ignore", "ignoreFiles", "redact", "localOnly"].map((name) => `privacy.${name}`);
  for (const path of [...evil, ...privacy]) {
    assert.ok(known.some((setting) => setting.path === path));
    assert.deepEqual(told({ [path]: { workspaceValue: "x" } }), {}, path);
  }
});

test("a workspace may switch off, never on", () => {
  for (const path of ["completion.enabled", "privacy.allowRemote"]) {
    const [table = "", name = ""] = path.split(".");
    assert.deepEqual(told({ [path]: { workspaceValue: false } }), { [table]: { [name]: false } });
    assert.deepEqual(told({ [path]: { globalValue: false, workspaceValue: true } }), { [table]: { [name]: false } });
    assert.deepEqual(told({ [path]: { workspaceValue: true } }), {});
  }
});

test("a language is off by its own setting, else by that of all", () => {
  assert.equal(languageOff({}, "python"), false);
  assert.equal(languageOff({ completion: { enabled: false } }, "python"), true);
  assert.equal(languageOff({ completion: { enabled: false }, languages: { python: { enabled: true } } }, "python"), false);
  assert.equal(languageOff({ languages: { python: { enabled: false } } }, "python"), true);
  assert.equal(languageOff({ languages: { python: { enabled: false } } }, "c"), false);
});

test("switching a language keeps what else is set", () => {
  const before = { python: { maxLines: 3 }, c: { enabled: false } };
  assert.deepEqual(withLanguage(before, "python", false), { python: { maxLines: 3, enabled: false }, c: { enabled: false } });
  assert.deepEqual(withLanguage(undefined, "c", true), { c: { enabled: true } });
});
