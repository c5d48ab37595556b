// SPDX-License-Identifier: Apache-2.0
// A loop outlives a failing round, never overlaps itself, answers a nudge at once, and its disposal waits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./clock.ts";
import { silentLog } from "./log.ts";
import { Loop } from "./loop.ts";

const HOUR = 3_600_000;

test("a failing round is visible and the next one runs", async () => {
  let rounds = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const loop = new Loop({
    name: "test",
    periodMs: 1,
    clock: systemClock,
    log: silentLog,
    round: () => {
      rounds++;
      if (rounds === 1) return Promise.reject(new Error("first round"));
      resolve();
      return Promise.resolve();
    },
  });
  await promise;
  await loop[Symbol.asyncDispose]();
  assert.ok(rounds >= 2);
  assert.equal(loop.last?.error, undefined);
});

test("a nudge ends the wait, and one during a round starts another round after it", async () => {
  const started: PromiseWithResolvers<void>[] = [
    Promise.withResolvers(),
    Promise.withResolvers(),
    Promise.withResolvers(),
  ];
  const gates: PromiseWithResolvers<void>[] = [
    Promise.withResolvers(),
    Promise.withResolvers(),
    Promise.withResolvers(),
  ];
  let round = 0;
  let running = 0;
  await using loop = new Loop({
    name: "test",
    periodMs: HOUR,
    clock: systemClock,
    log: silentLog,
    round: async () => {
      assert.equal(++running, 1, "rounds overlap");
      const index = round++;
      started[index]?.resolve();
      await gates[index]?.promise;
      running--;
    },
  });
  await started[0]?.promise;
  loop.nudge();
  gates[0]?.resolve();
  await started[1]?.promise;
  gates[1]?.resolve();
  gates[2]?.resolve();
});

test("disposal waits for the running round and is idempotent", async () => {
  let isDone = false;
  const started = Promise.withResolvers<void>();
  const loop = new Loop({
    name: "test",
    periodMs: HOUR,
    clock: systemClock,
    log: silentLog,
    round: async (signal) => {
      started.resolve();
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      isDone = true;
    },
  });
  await started.promise;
  await Promise.all([loop[Symbol.asyncDispose](), loop[Symbol.asyncDispose]()]);
  assert.equal(isDone, true);
});
