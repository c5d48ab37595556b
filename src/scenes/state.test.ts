// SPDX-License-Identifier: Apache-2.0
// The state file: what it says comes back, what it does not know is kept, and what proves no process is never taken for one.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { EMPTY_STATE, type ModelRecord, parseState, readState, type SceneState, writeState } from "./state.ts";

function rootOf(t: TestContext): string {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "state-"));
  t.after(() => fs.rmSync(root, { recursive: true, force: true }));
  return root;
}

const record: ModelRecord = {
  identity: { bootId: "boot", pid: 77, startTicks: "18446744073709551615", pidfdInode: "5" },
  legacy: undefined,
  port: 9001,
  marker: "hash",
  launchId: "model-a-b-1",
  spec: "spec",
  extra: { note: "kept" },
};
const state: SceneState = {
  ...EMPTY_STATE,
  desired: "one",
  active: "one",
  lastError: { at: "2026-01-01T00:00:00.000Z", scene: "two", error: "it said: no", restore: "one is restored" },
  generation: 7,
  models: new Map([["red", record]]),
  extra: { somebody: { else: 1 } },
};

const fileOf = (root: string): string => path.join(root, ".kuda", "state.yaml");

test("what was written comes back, with keys that are not ours, private and with the version before it", (t) => {
  const root = rootOf(t);
  assert.deepEqual(readState(root), { kind: "none" });
  writeState(root, EMPTY_STATE);
  writeState(root, state);
  const read = readState(root);
  assert.ok(read.kind === "read");
  const { extra, ...rest } = read.state;
  assert.deepEqual({ ...rest, extra: { somebody: extra["somebody"] } }, state);
  assert.equal(fs.statSync(fileOf(root)).mode & 0o777, 0o600);
  assert.match(fs.readFileSync(`${fileOf(root)}.bak`, "utf8"), /desired_scene: null/);
});

test("a torn, empty or foreign file is told, and the version before it is read", (t) => {
  for (const [bytes, why] of [
    ["", /is empty/],
    ["desired_scene: [", /is damaged/],
    ["- list", /no mapping/],
    ["desired_scene: 7", /desired_scene is no name/],
    ["models: []", /models is no mapping/],
    ["\u0000\u0001", /./],
  ] as const) {
    const root = rootOf(t);
    writeState(root, { ...state, desired: "older" });
    writeState(root, state);
    fs.writeFileSync(fileOf(root), bytes);
    const read = readState(root);
    assert.ok(read.kind === "fallback", JSON.stringify(bytes));
    assert.match(read.why, why);
    assert.equal(read.state.desired, "older");
    fs.rmSync(`${fileOf(root)}.bak`);
    assert.equal(readState(root).kind, "unreadable");
  }
});

test("a damaged file never replaces the good copy", (t) => {
  const root = rootOf(t);
  writeState(root, { ...state, desired: "older" });
  writeState(root, state);
  fs.writeFileSync(fileOf(root), "torn");
  writeState(root, { ...state, desired: "newest" });
  assert.match(fs.readFileSync(`${fileOf(root)}.bak`, "utf8"), /desired_scene: older/);
});

test("P7: pids that are no process of a model make a record legacy, and it says why", () => {
  const of = (fields: string): ModelRecord => {
    const read = parseState(`models:\n  red: ${fields}\n`, "state.yaml");
    assert.ok(read.kind === "read", fields);
    return read.state.models.get("red") ?? assert.fail();
  };
  const whole = "boot_id: b, process_start_ticks: 5";
  for (const pid of ["0", "-1", "1", "2147483648", "4194305", "text", "3.5", ".inf", "null", "[5]"]) {
    const { identity, legacy } = of(`{ pid: ${pid}, ${whole} }`);
    assert.equal(identity, undefined, pid);
    assert.match(legacy ?? "", /which is no process of a model/, pid);
  }
  assert.match(of("{ pid: 77 }").legacy ?? "", /names pid 77 without the boot/);
  assert.match(of("{ pid: 77, boot_id: b }").legacy ?? "", /without its start/);
  assert.match(of("{ pid: 77, boot_id: b, process_start_ticks: x }").legacy ?? "", /without its start/);
  assert.match(of("77").legacy ?? "", /names pid 77 without the boot/);
  assert.match(of("nothing").legacy ?? "", /"nothing"/);
  assert.deepEqual(of(`{ pid: 77, ${whole} }`).identity, { bootId: "b", pid: 77, startTicks: "5" });
});
