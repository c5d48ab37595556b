// SPDX-License-Identifier: Apache-2.0
// What one claim takes: turns between projects, the oldest first, only what has room, and who was passed over for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HOST, machineOf, roomNow } from "../../protocol/placement-pools.ts";
import type { JobId, LaneId } from "../../std/ids.ts";
import { type ClaimInput, planClaim, type WaitingLane } from "./claim-plan.ts";

const GIB = 2 ** 30;
const machine = machineOf({
  arch: "x64",
  memoryTotalBytes: 16.5 * GIB,
  memoryAvailableBytes: null,
  floorBytes: null,
  devices: [],
});
/** Jobs of one need, each with its turn. */
const lane = (id: string, gib: number, turns: readonly number[], project = ""): WaitingLane => ({
  id: id as LaneId,
  requirement: gib === 0 ? {} : { memoryBytes: gib * GIB },
  project,
  jobs: turns.map((turnMs) => ({ id: `${id}${turnMs}` as JobId, turnMs, waitedMs: 0 })),
});
const input = (change: Partial<ClaimInput>): ClaimInput => ({
  machine,
  holds: [],
  lanes: [],
  max: 4,
  lastProject: null,
  reserved: null,
  deferred: new Map(),
  ...change,
});
const taken = (change: Partial<ClaimInput>): string =>
  planClaim(input(change))
    .takes.map((take) => take.laneId)
    .join("");
const held = (gib: number) => ({ draws: [{ pool: HOST, gpu: null, bytes: gib * GIB }], isSettled: true });
const reserved = (gib: number): Pick<WaitingLane, "id" | "requirement"> => lane("r", gib, []);

test("in a project the oldest turn goes first, across lanes", () => {
  assert.equal(taken({ lanes: [lane("a", 0, [1, 4]), lane("b", 1, [2, 3])] }), "abba");
  assert.equal(taken({ lanes: [lane("a", 0, [1, 4]), lane("b", 1, [2, 3])], max: 2 }), "ab");
  assert.equal(taken({ lanes: [lane("a", 0, [1])], max: 0 }), "");
});

test("projects take turns, from the one after the last; where none was yet, whoever waits longest begins", () => {
  const lanes = [lane("x", 0, [1, 2, 3, 4, 5], "p1"), lane("y", 0, [9], "p2")];
  assert.equal(taken({ lanes }), "xyxx");
  assert.equal(taken({ lanes: lanes.toReversed(), lastProject: "p1", max: 1 }), "y");
  assert.equal(taken({ lanes, lastProject: "p2", max: 1 }), "x");
  assert.equal(taken({ lanes, lastProject: "gone", max: 1 }), "x");
  assert.equal(planClaim(input({ lanes, max: 2 })).lastProject, "p2");
  assert.equal(planClaim(input({ lastProject: "p1" })).lastProject, "p1", "nothing was taken");
});

test("what has no room now is passed over, and told when a later job took some", () => {
  const lanes = [lane("b", 12, [1]), lane("s", 2, [2]), lane("n", 0, [3])];
  const plan = (change: Partial<ClaimInput>) => {
    const { takes, overtaken } = planClaim(input({ lanes, ...change }));
    return [takes.map((take) => take.laneId).join(""), overtaken.join()];
  };
  assert.deepEqual(plan({}), ["bsn", ""]);
  assert.deepEqual(plan({ holds: [held(8)] }), ["sn", "b1"]);
  assert.deepEqual(plan({ holds: [held(15)] }), ["n", ""], "one that needs no memory takes none away");
  assert.deepEqual(
    plan({ holds: [held(8)], lanes: [lane("s", 2, [0]), lane("b", 12, [1])] }),
    ["s", ""],
    "it was first",
  );
});

test("one that came later than what was taken was not overtaken, whatever project it is of", () => {
  const lanes = [lane("b", 12, [9], "p1"), lane("s", 2, [2], "p2")];
  const plan = planClaim(input({ lanes, holds: [held(8)], lastProject: "p2" }));
  assert.deepEqual([plan.takes.map((take) => take.laneId), plan.overtaken], [["s"], []]);
});

test("one claim lends no pool twice", () => {
  assert.equal(taken({ lanes: [lane("a", 5, [1, 2, 3, 4])] }), "aaa");
  assert.equal(taken({ lanes: [lane("a", 5, [1, 2, 3, 4])], holds: [held(2)] }), "aa");
});

test("room that is kept for a job is lent to nobody else, and goes to it first", () => {
  const lanes = [lane("s", 4, [1, 2, 3, 4]), lane("r", 12, [9])];
  assert.equal(taken({ lanes, reserved: reserved(12) }), "rs", "first, and then what fits beside it");
  assert.equal(taken({ lanes, reserved: reserved(12), holds: [held(5)] }), "", "nobody else while it waits");
  assert.equal(taken({ lanes: [lane("s", 4, [1]), lane("n", 0, [2])], reserved: reserved(12), holds: [held(5)] }), "n");
  assert.equal(taken({ lanes: [lane("s", 4, [1, 2])], reserved: reserved(12) }), "s", "beside it is room for one");
});

test("a lane that is left to a faster node is not taken and not passed over", () => {
  const lanes = [lane("a", 4, [1]), lane("s", 4, [2])];
  const plan = planClaim(input({ lanes, deferred: new Map([["a" as LaneId, 0]]) }));
  assert.deepEqual([plan.takes.map((take) => take.laneId), plan.overtaken], [["s"], []]);
});

test("whatever waits, a claim takes at most what it may, and never more than there is", () => {
  const lanes = fc.array(
    fc.record({
      gib: fc.integer({ min: 0, max: 20 }),
      jobs: fc.integer({ min: 1, max: 4 }),
      project: fc.constantFrom("", "p", "q"),
    }),
    { maxLength: 5 },
  );
  const kept = fc.option(fc.integer({ min: 1, max: 16 }));
  fc.assert(
    fc.property(
      lanes,
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 0, max: 6 }),
      kept,
      (made, use, max, keep) => {
        const waiting = made.map(({ gib, jobs, project }, index) =>
          lane(
            `l${index}`,
            gib,
            Array.from({ length: jobs }, (_, job) => job * 10 + index),
            project,
          ),
        );
        const given = input({
          lanes: waiting,
          holds: [held(use)],
          max,
          reserved: keep === null ? null : reserved(keep),
        });
        const { takes } = planClaim(given);
        assert.ok(takes.length <= max);
        const holds = [held(use), ...takes.map(({ place }) => ({ draws: place.draws, isSettled: false }))];
        const asked = takes.flatMap(({ place }) => place.draws).reduce((sum, draw) => sum + draw.bytes, 0);
        assert.ok(asked === 0 || roomNow(machine, holds).pool(HOST) >= 0);
        for (const one of waiting) assert.ok(takes.filter((take) => take.laneId === one.id).length <= one.jobs.length);
      },
    ),
  );
});
