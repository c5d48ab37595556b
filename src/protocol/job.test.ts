// SPDX-License-Identifier: Apache-2.0
// The rules of a job's life, as tables and as properties over every ending.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { afterLoss, type Ending, isFinal, jobCan, jobStates, settle } from "./job.ts";

const ending = (change: Partial<Ending>): Ending => ({
  outcome: { kind: "exited", exitCode: 0 },
  stopped: undefined,
  cancelRequested: false,
  attempt: 1,
  retry: { maxAttempts: 3, onFailure: false },
  ...change,
});

test("exit code 0 is a success, even when a cancel came too late", () => {
  assert.deepEqual(settle(ending({})), { state: "succeeded" });
  assert.deepEqual(settle(ending({ cancelRequested: true })), { state: "succeeded" });
});

test("another exit code fails at once, and is tried again only when the job asks for it", () => {
  const outcome = { kind: "exited", exitCode: 3 } as const;
  assert.deepEqual(settle(ending({ outcome })), { state: "failed", reason: "exit-code" });
  const retry = { maxAttempts: 2, onFailure: true };
  assert.deepEqual(settle(ending({ outcome, retry })), { state: "queued", used: true, reason: "exit-code" });
  assert.deepEqual(settle(ending({ outcome, retry, attempt: 2 })), { state: "dead", reason: "exit-code" });
});

test("a command that cannot be executed is not tried again", () => {
  const outcome = { kind: "exec-failed", message: "no such file" } as const;
  assert.deepEqual(settle(ending({ outcome, retry: { maxAttempts: 5, onFailure: true } })), {
    state: "failed",
    reason: "exec-failed",
  });
});

test("a process that a node stopped for its time limit names the limit, not the signal", () => {
  const outcome = { kind: "signalled", signal: "SIGKILL" } as const;
  assert.deepEqual(settle(ending({ outcome, stopped: "time-limit" })), { state: "failed", reason: "time-limit" });
});

test("a cancelled process is cancelled, a released one goes back without using an attempt", () => {
  const outcome = { kind: "signalled", signal: "SIGTERM" } as const;
  assert.deepEqual(settle(ending({ outcome, stopped: "cancel", cancelRequested: true })), { state: "cancelled" });
  assert.deepEqual(settle(ending({ outcome, stopped: "release" })), {
    state: "queued",
    used: false,
    reason: "released",
  });
});

test("a lost attempt is tried again until the attempts are used up", () => {
  assert.deepEqual(afterLoss(1, { maxAttempts: 2, onFailure: false }), { state: "queued", used: true, reason: "lost" });
  assert.deepEqual(afterLoss(2, { maxAttempts: 2, onFailure: false }), { state: "dead", reason: "lost" });
});

test("no ending that was lost, interrupted or never started is a success, and none retries for ever", () => {
  const outcome = fc.oneof(
    fc.constant({ kind: "interrupted", message: "" } as const),
    fc.constant({ kind: "not-started", message: "" } as const),
    fc.constant({ kind: "signalled", signal: "SIGKILL" } as const),
    fc.integer({ min: 1, max: 255 }).map((exitCode) => ({ kind: "exited", exitCode }) as const),
  );
  const stopped = fc.constantFrom(undefined, "cancel", "time-limit", "output-limit", "release" as const);
  const retry = fc.record({ maxAttempts: fc.integer({ min: 1, max: 25 }), onFailure: fc.boolean() });
  const any = fc.record({
    outcome,
    stopped,
    cancelRequested: fc.boolean(),
    attempt: fc.integer({ min: 1, max: 30 }),
    retry,
  });
  fc.assert(
    fc.property(any, (given) => {
      const settled = settle(given);
      assert.notEqual(settled.state, "succeeded");
      if (settled.state === "queued" && settled.used) assert.ok(given.attempt < given.retry.maxAttempts);
    }),
  );
});

test("a job can be cancelled exactly while it has not ended", () => {
  for (const state of jobStates) {
    assert.equal((jobCan.cancel.states as readonly string[]).includes(state), !isFinal(state), state);
  }
});
