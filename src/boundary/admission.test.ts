// SPDX-License-Identifier: Apache-2.0
// Admission of a session's next job, row by row in the order of the specification, entering a network, and executed as a join.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Admission,
  admit,
  changeNetwork,
  enterNetwork,
  joinExecuted,
  type Ordering,
  type OrderingPort,
} from "./admission.ts";
import { isBurned } from "./burned.ts";
import { type BoundaryRecord, emptyRecord, type SessionRecord } from "./record.ts";

const id = (length: number, byte: number): Uint8Array => new Uint8Array(length).fill(byte);
const network = id(16, 1);
const session = id(32, 2);
const start = id(32, 3);
const executedStart = id(32, 4);
const floorPast = id(32, 5);
const successor = id(32, 6);

const known: SessionRecord = { network, session, start, head: null, successor, handled: [], entries: [] };
const withNetwork: BoundaryRecord = { ...emptyRecord, network, executed: [executedStart] };
const otherNetwork = id(16, 9);

/** Answers only what a row says; anything else may not be asked. */
function portOf(standing: { readonly floor?: Ordering; readonly executed?: Ordering }): OrderingPort {
  return (asked, other) => {
    assert.deepEqual(asked, start);
    const answer = Buffer.compare(other, floorPast) === 0 ? standing.floor : standing.executed;
    assert.ok(answer !== undefined, "asked for an order that decides nothing here");
    return answer;
  };
}

type Row = {
  readonly boundary: "untrusted" | BoundaryRecord | undefined;
  readonly floor?: Ordering;
  readonly executed?: Ordering;
  readonly result: Admission;
};

const belowFloor = { kind: "skipped", reason: "below-floor" } as const;
const fresh = { kind: "admit", successor: undefined } as const;
const notAbove = ["below", "equal", "concurrent", "unknown"] as const;

const ROWS: readonly Row[] = [
  // boundary untrusted, whatever else
  { boundary: "untrusted", result: { kind: "untrusted" } },
  { boundary: "untrusted", floor: "dominates", result: { kind: "untrusted" } },
  // a floor that the start does not strictly dominate, whatever the record
  ...notAbove.flatMap((floor) => [
    { boundary: undefined, floor, result: belowFloor },
    { boundary: withNetwork, floor, result: belowFloor },
    { boundary: { ...withNetwork, sessions: [known] }, floor, result: belowFloor },
  ]),
  // no record
  { boundary: undefined, result: fresh },
  { boundary: emptyRecord, result: fresh },
  { boundary: undefined, floor: "dominates", result: fresh },
  // another network
  { boundary: { ...withNetwork, network: otherNetwork }, result: fresh },
  { boundary: { ...withNetwork, network: otherNetwork }, floor: "dominates", result: fresh },
  // a session that the record knows resumes at its successor, also when its start is not above executed
  { boundary: { ...withNetwork, sessions: [known] }, result: { kind: "admit", successor } },
  { boundary: { ...withNetwork, sessions: [known] }, floor: "dominates", result: { kind: "admit", successor } },
  // strictly above executed, or above a floor of this life
  { boundary: withNetwork, executed: "dominates", result: fresh },
  ...(["concurrent", "unknown"] as const).map(
    (executed): Row => ({ boundary: withNetwork, floor: "dominates", executed, result: fresh }),
  ),
  // but not a session that ran above that floor itself, and has left the record since
  ...(["equal", "below"] as const).map(
    (executed): Row => ({ boundary: withNetwork, floor: "dominates", executed, result: { kind: "session-hop" } }),
  ),
  // otherwise
  ...notAbove.map((executed): Row => ({ boundary: withNetwork, executed, result: { kind: "session-hop" } })),
  // the same session in another network is another one
  {
    boundary: { ...withNetwork, sessions: [{ ...known, network: otherNetwork }] },
    executed: "unknown",
    result: { kind: "session-hop" },
  },
];

test("admits, skips and reports row by row, in this order", () => {
  for (const [index, row] of ROWS.entries()) {
    const boundary =
      row.boundary === "untrusted"
        ? ({ kind: "untrusted" } as const)
        : ({ kind: "trusted", record: row.boundary } as const);
    const floor = row.floor === undefined ? undefined : { past: floorPast };
    const given = admit({ boundary, floor, order: portOf(row) }, { network, session, start });
    assert.deepEqual(
      given,
      row.result,
      `row ${index}: ${JSON.stringify({ floor: row.floor, executed: row.executed })}`,
    );
  }
});

test("a start must be above every start that was executed under, not above one of them", () => {
  const record = { ...withNetwork, executed: [executedStart, id(32, 7)] };
  const order: OrderingPort = (_, other) => (Buffer.compare(other, executedStart) === 0 ? "dominates" : "concurrent");
  const given = admit({ boundary: { kind: "trusted", record }, floor: undefined, order }, { network, session, start });
  assert.deepEqual(given, { kind: "session-hop" });
});

test("entering a network: a floor where there is history and no record, and a report where the record burned it", () => {
  assert.deepEqual(enterNetwork(undefined, network, false), { kind: "enter" });
  assert.deepEqual(enterNetwork(emptyRecord, network, true), { kind: "enter-above", report: "none" });
  assert.deepEqual(enterNetwork(withNetwork, network, true), { kind: "enter" });
  const moved = changeNetwork(withNetwork, otherNetwork);
  assert.deepEqual(enterNetwork(moved, otherNetwork, true), { kind: "enter" });
  assert.deepEqual(enterNetwork(moved, network, true), { kind: "enter-above", report: "universe-flip-flop" });
  assert.deepEqual(enterNetwork(moved, id(16, 8), false), { kind: "enter" });
});

test("a network whose watermark is overwritten is burned for ever, and its starts rank nobody any more", () => {
  const moved = changeNetwork(withNetwork, otherNetwork);
  assert.deepEqual([moved.network, moved.executed], [otherNetwork, []]);
  const back = changeNetwork(moved, network);
  assert.ok(isBurned(back.burned, network) && isBurned(back.burned, otherNetwork));
  assert.equal(changeNetwork(withNetwork, network), withNetwork);
  assert.deepEqual(changeNetwork(emptyRecord, network).burned, emptyRecord.burned);
});

/** Starts of a random causal history: each knows some of those before it, and what they know. */
const history = fc.array(fc.nat({ max: 2 ** 20 }), { minLength: 2, maxLength: 9 }).map((masks) => {
  const below: Set<number>[] = [];
  for (const [index, mask] of masks.entries()) {
    const own = new Set<number>();
    for (let earlier = 0; earlier < index; earlier++)
      if ((mask & (1 << earlier)) !== 0) for (const each of [earlier, ...(below[earlier] ?? [])]) own.add(each);
    below.push(own);
  }
  return below;
});

const startOf = (index: number): Uint8Array => id(32, index + 1);
const orderIn =
  (below: readonly ReadonlySet<number>[], lost: ReadonlySet<number> = new Set()): OrderingPort =>
  (a, b) => {
    const [one, other] = [(a[0] ?? 0) - 1, (b[0] ?? 0) - 1];
    if (one === other) return "equal";
    if (lost.has(one) || lost.has(other)) return "unknown";
    if (below[one]?.has(other) === true) return "dominates";
    return below[other]?.has(one) === true ? "below" : "concurrent";
  };

test("executed is a join: whatever the order of arrival, what is left are the starts that no other dominates", () => {
  const shuffled = history.chain((below) =>
    fc.tuple(
      fc.constant(below),
      fc.shuffledSubarray(
        below.map((_, index) => index),
        { minLength: 1 },
      ),
      fc.boolean(),
    ),
  );
  fc.assert(
    fc.property(shuffled, ([below, arrived, isAboveFloor]) => {
      const order = orderIn(below);
      const joined = [...arrived, ...arrived].reduce<readonly Uint8Array[]>(
        (executed, index) => joinExecuted(executed, startOf(index), order, isAboveFloor),
        [],
      );
      const top = arrived.filter((index) => !arrived.some((other) => below[other]?.has(index)));
      assert.deepEqual(joined.map((each) => (each[0] ?? 0) - 1).sort(), top.sort());
    }),
  );
});

test("a start that the log lost stays in executed until one that lies above a floor is committed", () => {
  const order = orderIn([new Set(), new Set([0])], new Set([0]));
  const before = [startOf(0)];
  assert.deepEqual(joinExecuted(before, startOf(1), order, false), [startOf(0), startOf(1)]);
  assert.deepEqual(joinExecuted(before, startOf(1), order, true), [startOf(1)]);
  assert.deepEqual(joinExecuted([startOf(1)], startOf(1), order, true), [startOf(1)]);
});
