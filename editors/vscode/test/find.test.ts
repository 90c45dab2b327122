import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { findServer, installation, type Place } from "../src/find.ts";

let folder: string;
let place: Place;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "midfill-")));
  place = { platform: "linux", home: join(folder, "home"), env: { PATH: join(folder, "bin") }, extension: join(folder, "installed") };
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function program(...path: string[]): string {
  const file = join(folder, ...path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "");
  chmodSync(file, 0o755);
  return file;
}

function clone(): string {
  const root = join(folder, "clone");
  mkdirSync(join(root, "editors", "vscode"), { recursive: true });
  writeFileSync(join(root, "pyproject.toml"), "");
  place.extension = join(root, "editors", "vscode");
  return root;
}

test("the PATH comes first, then ~/.local/bin", () => {
  const local = program("home", ".local", "bin", "midfill");
  assert.deepEqual(findServer(null, place), { command: local, args: [] });
  const path = program("bin", "midfill");
  assert.deepEqual(findServer(undefined, place), { command: path, args: [] });
});

test("folders of the PATH that are relative are passed over", () => {
  program("bin", "midfill");
  const here = process.cwd();
  process.chdir(folder);
  try {
    for (const path of ["bin", "./bin", "", ":bin:"]) {
      assert.ok("missing" in findServer(null, { ...place, env: { PATH: path } }), path);
    }
  } finally {
    process.chdir(here);
  }
});

test("a file that cannot be run, and a folder, are no server", () => {
  chmodSync(program("bin", "midfill"), 0o644);
  mkdirSync(join(folder, "home", ".local", "bin", "midfill"), { recursive: true });
  assert.ok("missing" in findServer(null, place));
});

test("a clone's own environment counts where the extension is run from it, also through a link", () => {
  const root = clone();
  const command = program("clone", ".venv", "bin", "midfill");
  assert.deepEqual(findServer(null, place), { command, args: [] });
  symlinkSync(join(root, "editors", "vscode"), join(folder, "linked"));
  assert.deepEqual(findServer(null, { ...place, extension: join(folder, "linked") }), { command, args: [] });
  assert.ok("missing" in findServer(null, { ...place, extension: join(folder, "else", "editors", "vscode") }));
});

test("the setting is a path, a name or a list", () => {
  const file = program("opt", "midfill");
  program("home", "tools", "server");
  const named = program("bin", "midfill-dev");
  assert.deepEqual(findServer(file, place), { command: file, args: [] });
  assert.deepEqual(findServer([file, "--log-file", "x"], place), { command: file, args: ["--log-file", "x"] });
  assert.deepEqual(findServer("~/tools/server", place), { command: join(folder, "home", "tools", "server"), args: [] });
  assert.deepEqual(findServer("midfill-dev", place), { command: named, args: [] });
});

test("a setting that names nothing is not replaced by something else", () => {
  program("bin", "midfill");
  for (const setting of ["/nowhere/midfill", "bin/midfill", "./midfill", "nothing"]) {
    assert.deepEqual(findServer(setting, place), { missing: [setting], set: setting });
  }
});

test("Windows: the PATH by any case, .exe, Scripts", () => {
  const found = findServer(null, { ...place, platform: "win32", home: "C:\\Users\\me", env: { Path: "C:\\bin;tools" } });
  assert.deepEqual(found, { missing: ["PATH", "C:\\Users\\me\\.local\\bin\\midfill.exe"] });
});

test("the command that installs it", () => {
  const where = "in a clone of midfill ";
  assert.deepEqual(installation(place), { command: 'pipx install ".[local]"', where });
  program("bin", "uv");
  assert.deepEqual(installation(place), { command: 'uv tool install ".[local]"', where });
  const extension = join(clone(), "editors", "vscode");
  const command = `uv tool install "${join(folder, "clone")}[local]"`;
  assert.deepEqual(installation({ ...place, extension }), { command, where: "" });
});
