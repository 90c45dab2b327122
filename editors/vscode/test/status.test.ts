import assert from "node:assert/strict";
import { test } from "node:test";
import { MOST_RESTARTS, Status } from "../src/status.ts";

function running(): Status {
  const status = new Status();
  status.started();
  return status;
}

test("thinking until the server can be asked", () => {
  const status = new Status();
  assert.deepEqual([status.kind(), status.reason()], ["thinking", "the server is starting"]);
  status.started();
  assert.deepEqual([status.kind(), status.reason()], ["ready", ""]);
});

test("thinking while it is asked or works, even if there was an error", () => {
  const status = running();
  status.problem = "key refused";
  status.requests = 1;
  assert.deepEqual([status.kind(), status.reason()], ["thinking", ""]);
  status.requests = 0;
  status.work.set("1", "loading a model");
  assert.deepEqual([status.kind(), status.reason()], ["thinking", "loading a model"]);
  status.work.clear();
  assert.deepEqual([status.kind(), status.reason()], ["error", "key refused"]);
});

test("a suggestion ends an error", () => {
  const status = running();
  status.problem = "key refused";
  status.shown();
  assert.equal(status.kind(), "ready");
});

test("off is off, whatever else there is", () => {
  const status = running();
  status.broken = "gone";
  status.languageOff = "python";
  assert.deepEqual([status.kind(), status.reason()], ["off", "suggestions are switched off for python"]);
  status.off = true;
  assert.deepEqual([status.kind(), status.reason()], ["off", "suggestions are switched off"]);
});

test("a server that ends is started again, until it has ended too often in a row", () => {
  const status = running();
  for (let time = 0; time < MOST_RESTARTS; time += 1) {
    assert.equal(status.ended(), true);
    status.started();
  }
  assert.equal(status.ended(), false);
  assert.deepEqual([status.kind(), status.reason()], ["error", "the server ended 4 times in a row"]);
  status.forget();
  status.said = "no such option";
  assert.equal(status.kind(), "thinking");
  [1, 2, 3].forEach(() => { assert.equal(status.ended(), true); });
  assert.equal(status.ended(), false);
  assert.equal(status.reason(), "the server ended 4 times in a row: no such option");
});

test("a suggestion in between begins the row anew", () => {
  const status = running();
  for (let time = 0; time < 3 * MOST_RESTARTS; time += 1) {
    assert.equal(status.ended(), true);
    status.started();
    status.shown();
  }
});

test("requests and work end with the server", () => {
  const status = running();
  status.requests = 2;
  status.work.set("1", "loading a model");
  status.ended();
  status.started();
  assert.equal(status.kind(), "ready");
});
