// SPDX-License-Identifier: Apache-2.0
// Queue attempts in the record: each is entered once, never two of one job at once, and an ending is never taken back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Admitted, admitAttempt, type AttemptStart, closeAttempt, endAttempt, findAttempt } from "./attempts.ts";
import { ATTEMPTS_MAX, type BoundaryRecord, boundaryFormat, emptyRecord, storedIdentity } from "./record.ts";

const identity = storedIdentity({ bootId: "b".repeat(36), pid: 77, startTicks: "9007199254740993", pidfdInode: "5" });
const start = (jobId: string, epoch: string): AttemptStart => ({
  jobId,
  epoch,
  launchId: `attempt-${jobId}-${epoch}`,
  identity,
});

function admitted(given: Admitted): BoundaryRecord {
  assert.ok(given.kind === "admitted", JSON.stringify(given.kind));
  return given.record;
}
const entered = (record: BoundaryRecord, jobId: string, epoch: string) =>
  admitted(admitAttempt(record, start(jobId, epoch)));
const refusal = (record: BoundaryRecord, jobId: string, epoch: string): string => {
  const given = admitAttempt(record, start(jobId, epoch));
  assert.ok(given.kind === "refused");
  assert.notEqual(given.text, "");
  return given.reason;
};

test("P9: an attempt is entered once: while it runs and after its end, until the controller closed it", () => {
  const running = entered(emptyRecord, "job_a", "3");
  assert.equal(refusal(running, "job_a", "3"), "already-started");
  const ended = endAttempt(running, { jobId: "job_a", epoch: "3" }, "exited");
  assert.equal(refusal(ended, "job_a", "3"), "already-started");
  assert.deepEqual(findAttempt(ended, { jobId: "job_a", epoch: "3" })?.outcome, "exited");
  assert.deepEqual(closeAttempt(ended, { jobId: "job_a", epoch: "3" }), emptyRecord);
});

test("P9: no two attempts of one job at once, and never one before a later one", () => {
  const running = entered(emptyRecord, "job_a", "3");
  assert.equal(refusal(running, "job_a", "4"), "other-attempt-runs");
  assert.equal(refusal(running, "job_a", "2"), "older-epoch");
  const ended = endAttempt(running, { jobId: "job_a", epoch: "3" }, "interrupted");
  assert.equal(refusal(ended, "job_a", "2"), "older-epoch");
  assert.equal(entered(ended, "job_a", "4").attempts.length, 2);
  assert.equal(entered(running, "job_b", "1").attempts.length, 2);
});

test("epochs are compared as 64-bit counters, not as text or as floats", () => {
  const running = endAttempt(entered(emptyRecord, "job_a", "9"), { jobId: "job_a", epoch: "9" }, "exited");
  assert.equal(entered(running, "job_a", "10").attempts.length, 2);
  const large = entered(emptyRecord, "job_a", "9007199254740993");
  assert.equal(refusal(large, "job_a", "9007199254740992"), "older-epoch");
  assert.equal(refusal(large, "job_a", "9007199254740993"), "already-started");
});

test("what holds as many attempts as it may refuses the next and says so, and frees itself", () => {
  let record = emptyRecord;
  for (let number = 0; number < ATTEMPTS_MAX; number++) record = entered(record, `job_${number}`, "1");
  assert.equal(refusal(record, "job_x", "1"), "full");
  assert.equal(
    entered(closeAttempt(record, { jobId: "job_7", epoch: "1" }), "job_x", "1").attempts.length,
    ATTEMPTS_MAX,
  );
});

test("an ending changes only from interrupted to the real one", () => {
  const ref = { jobId: "job_a", epoch: "1" };
  const running = entered(emptyRecord, "job_a", "1");
  const outcomeOf = (record: BoundaryRecord) => findAttempt(record, ref)?.outcome;
  const interrupted = endAttempt(running, ref, "interrupted");
  assert.equal(outcomeOf(interrupted), "interrupted");
  assert.equal(endAttempt(interrupted, ref, "interrupted"), interrupted);
  const real = endAttempt(interrupted, ref, "exited");
  assert.equal(outcomeOf(real), "exited");
  for (const late of ["interrupted", "signalled", "exited"]) assert.equal(endAttempt(real, ref, late), real);
});

test("what is of no attempt here changes nothing, so that nothing is stored for it", () => {
  const running = entered(emptyRecord, "job_a", "1");
  assert.equal(endAttempt(running, { jobId: "job_a", epoch: "2" }, "exited"), running);
  assert.equal(closeAttempt(running, { jobId: "job_b", epoch: "1" }), running);
});

test("an identity with its 64-bit start comes back from the record's bytes", () => {
  const record = entered(emptyRecord, "job_a", "18446744073709551615");
  const decoded = boundaryFormat.decode(boundaryFormat.encode(record));
  assert.ok(decoded.kind === "ok");
  assert.deepEqual(decoded.body, record);
});
