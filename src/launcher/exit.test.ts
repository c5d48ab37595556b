// SPDX-License-Identifier: Apache-2.0
// The exit file's format, byte for byte as native/shim.c writes it, and what is not one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { describeEnding, parseExit } from "./exit.ts";

const tail =
  '"endedAtMs":1796090102725,"startedAtMs":1796090102723,"stdoutBytes":4,"stderrBytes":0,"descendants":2,"stopAsked":false,"killAsked":true}\n';
const written = { endedAtMs: 1796090102725, stdoutBytes: 4, stderrBytes: 0, stopAsked: false, killAsked: true };
const ran = { ...written, startedAtMs: 1796090102723, descendants: 2 };

test("reads each kind of ending", () => {
  const read = (head: string) => parseExit(`{"version":1,${head},${tail}`, "exit");
  assert.deepEqual(read('"kind":"exited","code":0'), { kind: "exited", code: 0, ...ran });
  assert.deepEqual(read('"kind":"signalled","signal":9'), { kind: "signalled", signal: 9, ...ran });
  assert.deepEqual(read('"kind":"exec-failed","stage":"directory","errno":2'), {
    kind: "exec-failed",
    stage: "directory",
    errno: 2,
    ...ran,
  });
  assert.deepEqual(read('"kind":"not-started"'), { kind: "not-started", ...written });
});

test("reads the limit, the hashes and what was dropped, where they are written", () => {
  const hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  const more = `"limit":"output","stdoutSha256":"${hash}","stderrSha256":"${hash}","stdoutDroppedBytes":7,`;
  const text = (extra: string) => `{"version":1,"kind":"signalled","signal":9,${extra}${tail}`;
  const exit = parseExit(text(more), "exit");
  const read = { limit: "output", stdoutSha256: hash, stderrSha256: hash, stdoutDroppedBytes: 7 };
  assert.deepEqual(exit, { kind: "signalled", signal: 9, ...ran, ...read });
  assert.equal(describeEnding(exit), "passed its limit of output and was ended by SIGKILL");
  for (const wrong of ['"limit":"patience",', '"stdoutSha256":"00",'])
    assert.throws(() => parseExit(text(wrong), "exit"), { code: "launch_damaged" });
});

test("refuses what is torn, incomplete or unknown as damage, and a newer version by its own code", () => {
  const whole = `{"version":1,"kind":"exited","code":0,${tail}`;
  for (let length = 0; length < whole.length - 2; length++) {
    assert.throws(() => parseExit(whole.slice(0, length), "exit"), { code: "launch_damaged" }, String(length));
  }
  for (const wrong of [
    whole.replace('"code":0', '"code":-1'),
    whole.replace("exited", "vanished"),
    whole.replace("false", "0"),
    "[]",
    "null",
  ]) {
    assert.throws(() => parseExit(wrong, "exit"), { code: "launch_damaged" }, wrong);
  }
  assert.throws(() => parseExit(whole.replace('"version":1', '"version":2'), "exit"), { code: "launch_newer" });
});

test("says each ending in words", () => {
  assert.equal(describeEnding({ kind: "signalled", signal: 9, ...ran }), "was ended by SIGKILL");
  assert.equal(describeEnding({ kind: "signalled", signal: 40, ...ran }), "was ended by signal 40");
  const missing = { kind: "exec-failed", stage: "exec", errno: 2, ...ran } as const;
  assert.equal(describeEnding(missing), "never ran: the program could not be executed (ENOENT)");
  assert.equal(describeEnding({ kind: "lost" }), "ended with nobody to see how");
});
