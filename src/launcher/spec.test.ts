// SPDX-License-Identifier: Apache-2.0
// What is written for a launch: the spec that stays, and the params that the shim reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobId } from "../std/ids.ts";
import { parseIdentity } from "./identity.ts";
import { encodeParams, encodeSpec, environmentOf, type LaunchSpec, launchIdOf, parseSpec } from "./spec.ts";

const spec: LaunchSpec = {
  launchId: "attempt-job_1-9007199254740993",
  purpose: { kind: "attempt", jobId: "job_1" as JobId, epoch: "9007199254740993" },
  argv: ["sh", "", "a\nb=c"],
  workingDirectory: "/a b",
  limits: { cpuSeconds: 5, openFiles: 64 },
  createdAtMs: 1,
};

test("reads back the spec that it wrote", () => {
  assert.deepEqual(parseSpec(encodeSpec(spec), "spec.json"), spec);
  assert.throws(() => parseSpec(encodeSpec(spec).replace('attempt"', 'party"'), "spec.json"), {
    code: "launch_damaged",
  });
});

test("reads an epoch that was written as a number, and keeps none that is no counter", () => {
  const withEpoch = (epoch: string): string => encodeSpec(spec).replace('"9007199254740993"', epoch);
  assert.equal(parseSpec(withEpoch("3"), "spec.json").purpose.epoch, "3");
  for (const wrong of ['"03"', '"-1"', '"1e3"', "1.5", "null"])
    assert.throws(() => parseSpec(withEpoch(wrong), "spec.json"), { code: "launch_damaged" });
});

test("derives one launch id from one purpose", () => {
  assert.equal(launchIdOf(spec.purpose), spec.launchId);
  assert.notEqual(launchIdOf({ ...spec.purpose, epoch: "9007199254740992" }), spec.launchId);
});

test("writes params as NUL-ended records, with a dash for a limit that is left", () => {
  const records = encodeParams(spec, { A: "1", B: "" }).split("\0");
  assert.deepEqual(records, [
    "version=1",
    "directory=/a b",
    "account=-",
    "cpuSeconds=5",
    "addressSpaceBytes=-",
    "fileSizeBytes=-",
    "openFiles=64",
    "argument=sh",
    "argument=",
    "argument=a\nb=c",
    "environment=A=1",
    "environment=B=",
    "",
  ]);
});

test("gives the caller's variables precedence over the defaults", () => {
  const environment = environmentOf({ name: "ada", home: "/home/ada" }, { HOME: "/elsewhere", X: "1" });
  assert.deepEqual([environment["HOME"], environment["USER"], environment["X"]], ["/elsewhere", "ada", "1"]);
});

test("refuses an identity without all of it", () => {
  const whole = { version: 1, bootId: "f5bfb13b-323b-4e3f-b4a3-6c4a3521486e", pid: 77, startTicks: "293052" };
  assert.equal(parseIdentity(JSON.stringify(whole), "identity").pid, 77);
  for (const wrong of [{ pid: 1 }, { pid: undefined }, { startTicks: "" }, { bootId: "" }, { startTicks: 5 }]) {
    assert.throws(() => parseIdentity(JSON.stringify({ ...whole, ...wrong }), "identity"), { code: "launch_damaged" });
  }
});
