// SPDX-License-Identifier: Apache-2.0
// Sessions in the record: positions in chain order, each once, a burn that cannot undo an advance, and every list's limit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { admit, type OrderingPort } from "./admission.ts";
import { BURNED_BYTES, isBurned } from "./burned.ts";
import {
  type BoundaryRecord,
  emptyRecord,
  ENTRIES_MAX,
  EXECUTED_MAX,
  HANDLED_MAX,
  SESSIONS_MAX,
  storedIdentity,
} from "./record.ts";
import { burnJob, closeJob, commitJob, type Committed, endJob, handledAs, type JobStart } from "./sessions.ts";

const identity = storedIdentity({ bootId: "b".repeat(36), pid: 77, startTicks: "5" });
const idOf = (length: number, number: number): Uint8Array => {
  const made = new Uint8Array(length);
  new DataView(made.buffer).setUint32(0, number);
  return made;
};
const network = idOf(16, 1);
/** Starts rank by their numbers. */
const byNumber: OrderingPort = (a, b) => {
  const order = Buffer.compare(a, b);
  return order === 0 ? "equal" : order > 0 ? "dominates" : "below";
};
const rules = { order: byNumber, isAboveFloor: false };
const asked = (session: number, inNetwork = network) => ({
  network: inNetwork,
  session: idOf(32, session),
  start: idOf(32, session),
});
const jobId = (session: number, position: number): Uint8Array => idOf(32, session * 10_000 + position);
const start = (session: number, position: number, inNetwork = network): JobStart => ({
  ...asked(session, inNetwork),
  job: jobId(session, position),
  successor: jobId(session, position + 1),
  launchId: `session-${session}-${position}`,
  identity,
});

function committed(given: Committed): BoundaryRecord {
  assert.ok(given.kind === "committed", JSON.stringify(given.kind));
  return given.record;
}
const commit = (record: BoundaryRecord, session: number, position: number): BoundaryRecord =>
  committed(commitJob(record, start(session, position), rules));
const kindOf = (record: BoundaryRecord, session: number, position: number): string =>
  commitJob(record, start(session, position), rules).kind;

test("P9: positions are committed in chain order, each once; one that comes too early waits", () => {
  const first = commit(emptyRecord, 1, 0);
  assert.equal(kindOf(first, 1, 0), "already-handled");
  assert.equal(kindOf(first, 1, 2), "waits");
  const second = commit(first, 1, 1);
  assert.equal(kindOf(second, 1, 0), "already-handled");
  assert.equal(kindOf(second, 1, 1), "already-handled");
  assert.deepEqual(second.sessions[0]?.head, jobId(1, 1));
  assert.deepEqual(second.sessions[0]?.successor, jobId(1, 2));
});

test("a handled position answers with what is known of its end, also after its entry left", () => {
  const ended = endJob(commit(emptyRecord, 1, 0), idOf(32, 1), jobId(1, 0), "exited");
  assert.deepEqual(commitJob(ended, start(1, 0), rules), { kind: "already-handled", known: "exited" });
  const closed = closeJob(ended, idOf(32, 1), jobId(1, 0));
  assert.deepEqual(closed.sessions[0]?.entries, []);
  assert.deepEqual(commitJob(closed, start(1, 0), rules), { kind: "already-handled", known: "" });
  assert.equal(handledAs(closed.sessions[0] ?? assert.fail(), jobId(1, 7)), undefined);
});

test("an entry that runs is not closed, and an ending changes only from interrupted to the real one", () => {
  const running = commit(emptyRecord, 1, 0);
  assert.equal(closeJob(running, idOf(32, 1), jobId(1, 0)).sessions[0]?.entries.length, 1);
  const outcome = (record: BoundaryRecord) => record.sessions[0]?.entries[0]?.outcome;
  const interrupted = endJob(running, idOf(32, 1), jobId(1, 0), "interrupted");
  const real = endJob(interrupted, idOf(32, 1), jobId(1, 0), "exited");
  assert.deepEqual([outcome(interrupted), outcome(real)], ["interrupted", "exited"]);
  assert.equal(outcome(endJob(real, idOf(32, 1), jobId(1, 0), "interrupted")), "exited");
});

const burn = (record: BoundaryRecord, session: number, position: number, successor: number): Committed =>
  burnJob(record, { ...asked(session), job: jobId(session, position), successor: jobId(session, successor) }, rules);

test("a burned position never runs, and what takes its place may; a burn of what ran or is not next changes nothing", () => {
  const burned = committed(burn(commit(emptyRecord, 1, 0), 1, 1, 501));
  assert.equal(kindOf(burned, 1, 1), "already-handled");
  assert.equal(kindOf(burned, 1, 2), "waits");
  assert.equal(kindOf(burned, 1, 501), "committed");
  assert.equal(burn(burned, 1, 0, 600).kind, "already-handled");
  assert.equal(burn(burned, 1, 3, 600).kind, "waits");
  const first = committed(burn(emptyRecord, 1, 0, 501));
  assert.deepEqual([first.sessions[0]?.head, first.executed], [null, [idOf(32, 1)]]);
});

test("a burn is computed from the record as it is: the advance that came in between stays", () => {
  const before = commit(emptyRecord, 1, 0);
  const advanced = commit(before, 1, 1);
  assert.equal(burn(advanced, 1, 1, 501).kind, "already-handled");
  assert.equal(burn(before, 1, 1, 501).kind, "committed", "from a snapshot it would have undone the advance");
});

test("the first commit in another network burns the one before, and is executed under its own start only", () => {
  const here = commit(commit(emptyRecord, 1, 0), 2, 0);
  assert.deepEqual(here.executed, [idOf(32, 2)]);
  const other = idOf(16, 2);
  const there = committed(commitJob(here, start(3, 0, other), rules));
  assert.ok(isBurned(there.burned, network) && !isBurned(there.burned, other));
  assert.deepEqual([there.network, there.executed], [other, [idOf(32, 3)]]);
  assert.equal(there.burned.length, BURNED_BYTES);
});

test("no more entries than the record may hold, over all sessions; a closed one makes room", () => {
  let record = emptyRecord;
  for (let number = 0; number < ENTRIES_MAX; number++)
    record = commit(record, 1 + (number % 4), Math.floor(number / 4));
  const given = commitJob(record, start(1, ENTRIES_MAX / 4), rules);
  assert.deepEqual(given, { kind: "refused", reason: "full" });
  const ended = endJob(record, idOf(32, 2), jobId(2, 0), "exited");
  assert.equal(kindOf(closeJob(ended, idOf(32, 2), jobId(2, 0)), 1, ENTRIES_MAX / 4), "committed");
});

test("P9: a long session goes on: what it has handled beyond the record's limit is not answered any more, and never runs again", () => {
  let record = emptyRecord;
  for (let position = 0; position < HANDLED_MAX; position++) {
    record = endJob(commit(record, 1, position), idOf(32, 1), jobId(1, position), "exited");
    record = closeJob(record, idOf(32, 1), jobId(1, position));
  }
  record = commit(record, 1, HANDLED_MAX);
  record = committed(burn(record, 1, HANDLED_MAX + 1, 9999));
  const handled = record.sessions[0]?.handled ?? [];
  assert.equal(handled.length, HANDLED_MAX);
  for (const position of [0, 1]) assert.equal(kindOf(record, 1, position), "waits");
  for (const position of [2, HANDLED_MAX]) assert.equal(kindOf(record, 1, position), "already-handled");
});

test("a position whose entry is open stays handled, however many come after it", () => {
  let record = commit(emptyRecord, 1, 0);
  for (let position = 1; position < HANDLED_MAX + 5; position++) {
    record = endJob(commit(record, 1, position), idOf(32, 1), jobId(1, position), "exited");
    record = closeJob(record, idOf(32, 1), jobId(1, position));
  }
  assert.equal(kindOf(record, 1, 0), "already-handled");
  assert.equal(kindOf(record, 1, 1), "waits");
});

test("an ending that is known, or of nothing, changes nothing, so nothing is stored", () => {
  const record = commit(emptyRecord, 1, 0);
  const ended = endJob(record, idOf(32, 1), jobId(1, 0), "exited");
  assert.equal(endJob(ended, idOf(32, 1), jobId(1, 0), "exited"), ended);
  assert.equal(endJob(record, idOf(32, 2), jobId(1, 0), "exited"), record);
  assert.equal(closeJob(record, idOf(32, 1), jobId(1, 0)), record);
  const closed = closeJob(ended, idOf(32, 1), jobId(1, 0));
  assert.equal(closeJob(closed, idOf(32, 1), jobId(1, 0)), closed);
});

function sessionsOf(count: number, isSettled: boolean): BoundaryRecord {
  let record = emptyRecord;
  for (let session = 1; session <= count; session++) {
    record = commit(record, session, 0);
    if (isSettled)
      record = closeJob(
        endJob(record, idOf(32, session), jobId(session, 0), "exited"),
        idOf(32, session),
        jobId(session, 0),
      );
  }
  return record;
}

test("P9: the oldest settled session leaves for a new one, and what it ran is not admitted again", () => {
  const full = sessionsOf(SESSIONS_MAX, true);
  const next = commit(full, SESSIONS_MAX + 1, 0);
  assert.equal(next.sessions.length, SESSIONS_MAX);
  assert.deepEqual(next.sessions[0]?.session, idOf(32, 2));
  const state = { boundary: { kind: "trusted", record: next }, floor: undefined, order: byNumber } as const;
  assert.deepEqual(admit(state, asked(1)), { kind: "session-hop" });
});

test("P9: a session that ran above a floor of this life and has left the record is not admitted again by that floor", () => {
  const full = sessionsOf(SESSIONS_MAX, true);
  const next = commit(full, SESSIONS_MAX + 1, 0);
  const state = { boundary: { kind: "trusted", record: next }, floor: { past: idOf(32, 0) }, order: byNumber } as const;
  assert.deepEqual(admit(state, asked(1)), { kind: "session-hop" });
  assert.deepEqual(admit(state, asked(SESSIONS_MAX + 2)), { kind: "admit", successor: undefined });
});

test("a session that still runs something never leaves: a new one is refused instead", () => {
  assert.equal(kindOf(sessionsOf(SESSIONS_MAX, false), SESSIONS_MAX + 1, 0), "refused");
});

test("more concurrent starts than can be kept apart refuse a new session", () => {
  const concurrent: OrderingPort = (a, b) => (Buffer.compare(a, b) === 0 ? "equal" : "concurrent");
  let record: BoundaryRecord = {
    ...emptyRecord,
    network,
    executed: Array.from({ length: EXECUTED_MAX }, (_, index) => idOf(32, 500 + index)),
  };
  assert.equal(commitJob(record, start(1, 0), { order: concurrent, isAboveFloor: false }).kind, "refused");
  record = { ...record, executed: record.executed.slice(1) };
  assert.equal(commitJob(record, start(1, 0), { order: concurrent, isAboveFloor: false }).kind, "committed");
});
