// SPDX-License-Identifier: Apache-2.0
// Claims about what is told of an end, about results, and about where output is cut.

import assert from "node:assert/strict";
import { test } from "node:test";
import { JOB_RESULT_BYTES_MAX } from "../protocol/limits.ts";
import { endingOfAdopted } from "./ending.ts";
import { wholeCharacters } from "./log-pump.ts";
import { notStarted, reportOf, seen } from "./outcome.ts";
import { parseResult } from "./result.ts";

const lease = { jobId: "job_00000000000000000000000001", epoch: "3" };
const written = {
  startedAtMs: 1000,
  endedAtMs: 2000,
  stdoutBytes: 0,
  stderrBytes: 0,
  descendants: 0,
  stopAsked: false,
  killAsked: false,
};

test("a process that ended before it was asked to stop was not stopped by us", () => {
  const report = (change: object) =>
    reportOf(lease, seen({ kind: "exited", code: 0, ...written, ...change }), "release", {});
  assert.equal(report({}).stopped, null);
  assert.equal(report({ stopAsked: true }).stopped, "release");
  assert.equal(report({ killAsked: true }).stopped, "release");
});

test("every ending of the launcher has an outcome of its own", () => {
  const kinds = [
    seen({ kind: "exited", code: 3, ...written }),
    seen({ kind: "signalled", signal: 9, ...written }),
    seen({ kind: "exec-failed", stage: "exec", errno: 2, ...written }),
    seen({ kind: "not-started", ...written }),
    seen({ kind: "lost" }),
  ].map((end) => reportOf(lease, end, undefined, {}).outcome);
  assert.deepEqual(
    kinds.map((outcome) => outcome.kind),
    ["exited", "signalled", "exec-failed", "not-started", "interrupted"],
  );
  assert.deepEqual(kinds[1], { kind: "signalled", signal: "SIGKILL" });
});

test("what was never started by the agent before is not started, what it lost sight of is interrupted", () => {
  const launch = { launchId: "x", spec: undefined };
  const trace = { ...launch, directory: "/x", identity: undefined, cgroup: undefined };
  assert.equal(endingOfAdopted({ ...launch, kind: "not-started" }).outcome.kind, "not-started");
  assert.equal(endingOfAdopted({ ...launch, kind: "interrupted", reason: "other-boot" }).outcome.kind, "interrupted");
  assert.equal(
    endingOfAdopted({ ...launch, kind: "damaged", problem: "p", survivors: [], trace }).outcome.kind,
    "interrupted",
  );
});

test("a limit that the shim enforced is told as the reason, whatever else was about to stop it", () => {
  const ran = { startedAtMs: 1, endedAtMs: 2, stdoutBytes: 0, stderrBytes: 0, descendants: 0 };
  const told = (limit: "output" | "wall-time" | "cpu-seconds", stopAsked: boolean) => {
    const end = seen({ kind: "signalled", signal: 9, ...ran, stopAsked, killAsked: false, limit });
    const { stopped, message } = reportOf(lease, end, stopAsked ? "cancel" : undefined, {});
    return [stopped, message];
  };
  assert.deepEqual(told("output", false), ["output-limit", "it passed its limit of output"]);
  assert.deepEqual(told("wall-time", true), ["time-limit", "it passed its limit of time"]);
  assert.deepEqual(told("cpu-seconds", false), [null, "it passed its limit of CPU time"]);
});

test("messages are storable and within their limit", () => {
  const report = reportOf(lease, notStarted(`a\0b\uD800${"x".repeat(5000)}`), undefined, {
    problem: "\0".repeat(3000),
  });
  assert.ok(
    "message" in report.outcome &&
      report.outcome.message.length <= 1024 &&
      report.outcome.message.startsWith("a\\u0000b\uFFFD"),
  );
  assert.ok((report.message ?? "").length <= 1024 && !(report.message ?? "").includes("\0"));
});

test("a result is taken when it is storable JSON, and dropped with the reason when not", () => {
  const parse = (text: string) => parseResult(Buffer.from(text));
  assert.deepEqual(parse(' {"a":[1]}\n'), { result: { a: [1] } });
  assert.deepEqual(parse("null"), { result: null });
  assert.match(parse("").problem ?? "", /not JSON/);
  assert.match(parse("{").problem ?? "", /not JSON/);
  assert.match(parse('{"a":"\\u0000"}').problem ?? "", /\/a contains a NUL/);
  assert.match(parse("1e999").problem ?? "", /too large/);
  assert.match(parse(`${"[".repeat(40)}${"]".repeat(40)}`).problem ?? "", /deeper/);
  assert.match(parse(`"${"x".repeat(JOB_RESULT_BYTES_MAX)}"`).problem ?? "", /larger than/);
  // Rounded it would be another number, and nobody would know.
  assert.match(parse('{"id":1970670598291982290}').problem ?? "", /\/id is a number with more digits/);
  assert.match(parseResult(Buffer.from([0x22, 0xff, 0x22])).problem ?? "", /not UTF-8/);
  const grows = `[${Array.from({ length: 40_000 }, () => "1e20").join()}]`;
  assert.ok(grows.length < JOB_RESULT_BYTES_MAX);
  assert.match(parse(grows).problem ?? "", /larger than/);
});

test("output is cut between characters; broken sequences are cut anywhere", () => {
  const bytes = Buffer.from("aä€😀");
  const cuts = Array.from(bytes, (_, index) => wholeCharacters(bytes, index + 1));
  assert.deepEqual(cuts, [1, 1, 3, 3, 3, 6, 6, 6, 6, 10]);
  assert.equal(wholeCharacters(Buffer.from([0x80, 0x80, 0x80, 0x80, 0x80]), 5), 5);
  assert.equal(wholeCharacters(Buffer.from([0xff]), 1), 1);
});
