// SPDX-License-Identifier: Apache-2.0
// What is written for a launch: the spec that stays, and the params that the shim reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobId } from "../std/ids.ts";
import { parseIdentity } from "./identity.ts";
import { launchIdOf, type Purpose, purposeFaults } from "./purpose.ts";
import { encodeParams, encodeSpec, environmentOf, type LaunchSpec, parseSpec, specFaults } from "./spec.ts";

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
  assert.deepEqual(parseSpec(withEpoch("3"), "spec.json").purpose, { ...spec.purpose, epoch: "3" });
  for (const wrong of ['"03"', '"-1"', '"1e3"', "1.5", "null"])
    assert.throws(() => parseSpec(withEpoch(wrong), "spec.json"), { code: "launch_damaged" });
});

test("derives one launch id from one purpose", () => {
  assert.equal(launchIdOf(spec.purpose), spec.launchId);
  const purposes: readonly Purpose[] = [
    { kind: "attempt", jobId: "a" as JobId, epoch: "1" },
    { kind: "attempt", jobId: "a" as JobId, epoch: "2" },
    { kind: "signed", session: "a", position: "1" },
    { kind: "signed", session: "a", position: "11" },
    { kind: "model", scene: "a", model: "1", generation: "1" },
    { kind: "model", scene: "a", model: "b", generation: "1" },
  ];
  assert.equal(new Set(purposes.map(launchIdOf)).size, purposes.length);
  assert.deepEqual(purposes.flatMap(purposeFaults), []);
  // With a dash these two would be one.
  for (const [scene, model] of [
    ["a-b", "c"],
    ["a", "b-c"],
  ] as const)
    assert.equal(purposeFaults({ kind: "model", scene, model, generation: "1" }).length, 1);
  for (const position of ["01", "-1", "1e3", ""])
    assert.equal(purposeFaults({ kind: "signed", session: "s", position }).length, 1);
});

test("a spec of a newer format, or with more than an attempt for an older Holdfast, says that an update is needed", () => {
  assert.throws(() => parseSpec(encodeSpec(spec).replace('"version":1', '"version":3'), "spec.json"), {
    code: "launch_newer",
  });
  assert.match(encodeSpec(spec), /^\{"version":1,/);
  const signed: LaunchSpec = {
    ...spec,
    purpose: { kind: "signed", session: "s", position: "7" },
    signed: "c2lnbmVk",
    cgroup: { kind: "none", why: "not delegated" },
    output: { mode: "files" },
  };
  assert.match(encodeSpec(signed), /^\{"version":2,/);
  assert.deepEqual(parseSpec(encodeSpec(signed), "spec.json"), signed);
  const model: LaunchSpec = {
    ...spec,
    purpose: { kind: "model", scene: "s", model: "m", generation: "1" },
    output: { mode: "pump", fileBytes: 4096, files: 3 },
    cgroup: { kind: "own", path: "/a/holdfast-x" },
  };
  assert.deepEqual(parseSpec(encodeSpec(model), "spec.json"), model);
});

test("the signed bytes are with a signed job, and with nothing else", () => {
  const signedJob = { ...spec, purpose: { kind: "signed", session: "s", position: "7" } } as const;
  assert.deepEqual(
    [spec, { ...spec, signed: "AA==" }, signedJob, { ...signedJob, signed: "AA==" }].map(
      (each) => specFaults(each, {}).length,
    ),
    [0, 1, 1, 0],
  );
});

test("writes params as NUL-ended records, with a dash for a limit that is left", () => {
  const records = encodeParams(
    { ...spec, limits: { ...spec.limits, outputBytes: 9 } },
    { A: "1", B: "" },
    { cgroup: "/sys/fs/cgroup/x", account: "jobs" },
  ).split("\0");
  assert.deepEqual(records, [
    "version=1",
    "directory=/a b",
    "account=jobs",
    "cgroup=/sys/fs/cgroup/x",
    "output=files",
    "pumpFileBytes=-",
    "pumpFiles=-",
    "cpuSeconds=5",
    "addressSpaceBytes=-",
    "fileSizeBytes=-",
    "openFiles=64",
    "outputBytes=9",
    "wallTimeMs=-",
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
  assert.equal(parseIdentity(JSON.stringify(whole), "identity").identity.pid, 77);
  for (const wrong of [{ pid: 1 }, { pid: undefined }, { startTicks: "" }, { bootId: "" }, { startTicks: 5 }]) {
    assert.throws(() => parseIdentity(JSON.stringify({ ...whole, ...wrong }), "identity"), { code: "launch_damaged" });
  }
});
