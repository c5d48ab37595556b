// SPDX-License-Identifier: Apache-2.0
// The boundary over real directories: what was admitted is known in the next life, what cannot be trusted refuses every job
// until an operator decides, and a disk that fails is named.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { ATTEMPTS_MAX, boundaryFormat } from "../../src/boundary/record.ts";
import { type Boundary, BOUNDARY_TENANT, type BoundaryState, resetBoundary } from "../../src/boundary/boundary.ts";
import { encodeCbor } from "../../src/records/cbor.ts";
import { directoryOf, openBoundary, startOf } from "./kit.ts";

const slotsOf = (t: TestContext, count = 2): readonly string[] => {
  const directory = directoryOf(t);
  return Array.from({ length: count }, (_, index) => path.join(directory, `slot-${index}`));
};
const whyUntrusted = (state: BoundaryState): string => (state.kind === "untrusted" ? state.why : "");
const recordIn = (slot: string | undefined): string => path.join(slot ?? "", BOUNDARY_TENANT);

test("P9: what was admitted is refused in the same life and in the next one, and known with its identity", async (t) => {
  const slots = slotsOf(t);
  {
    using life = await openBoundary(slots);
    assert.deepEqual(await life.boundary.startAttempt(startOf(1)), { kind: "admitted" });
    const again = await life.boundary.startAttempt(startOf(1));
    assert.ok(again.kind === "refused" && again.reason === "already-started");
  }
  using life = await openBoundary(slots);
  const again = await life.boundary.startAttempt(startOf(1));
  assert.ok(again.kind === "refused" && again.reason === "already-started");
  const { launchId, identity } = startOf(1);
  assert.deepEqual(
    life.boundary.record.attempts.map((entry) => [entry.launchId, entry.identity, entry.stage]),
    [[launchId, identity, "released"]],
  );
});

test("32 starts together are all in every slot when they are admitted, in one write", async (t) => {
  const slots = slotsOf(t);
  using life = await openBoundary(slots);
  const started = await Promise.all(
    Array.from({ length: 32 }, (_, number) => life.boundary.startAttempt(startOf(number))),
  );
  assert.ok(started.every(({ kind }) => kind === "admitted"));
  assert.equal(life.boundary.evidence?.sequence, 1n);
  assert.equal(life.boundary.record.attempts.length, 32);
  assert.equal(Buffer.compare(fs.readFileSync(recordIn(slots[0])), fs.readFileSync(recordIn(slots[1]))), 0);
});

test("the same attempt twice at once is admitted once", async (t) => {
  using life = await openBoundary(slotsOf(t));
  const kinds = (await Promise.all([1, 1, 1].map((number) => life.boundary.startAttempt(startOf(number))))).map(
    ({ kind }) => kind,
  );
  assert.deepEqual(kinds.sort(), ["admitted", "refused", "refused"]);
});

test("an attempt leaves when it is closed, and its ending is known before", async (t) => {
  const slots = slotsOf(t);
  {
    using life = await openBoundary(slots);
    await life.boundary.startAttempt(startOf(1));
    await life.boundary.endAttempt(startOf(1), "exited");
  }
  {
    using life = await openBoundary(slots);
    assert.deepEqual(
      life.boundary.record.attempts.map(({ outcome }) => outcome),
      ["exited"],
    );
    await life.boundary.closeAttempt(startOf(1));
  }
  using life = await openBoundary(slots);
  assert.deepEqual(life.boundary.record.attempts, []);
  assert.deepEqual(life.boundary.state, { kind: "trusted" });
});

test("a store that fails refuses the job and says which disk; the next that works is trusted again, and the failed one has not happened", async (t) => {
  const slots = slotsOf(t);
  using life = await openBoundary(slots);
  await life.boundary.startAttempt(startOf(1));
  fs.rmSync(slots[1] ?? "", { recursive: true });
  const started = await life.boundary.startAttempt(startOf(2));
  assert.ok(started.kind === "unable");
  assert.equal(
    started.text.startsWith(`${recordIn(slots[1])} could not be written (ENOENT): is its disk mounted?`),
    true,
    started.text,
  );
  assert.equal(life.boundary.state.kind, "unwritable");
  const repeated = await life.boundary.startAttempt(startOf(1));
  assert.equal(repeated.kind, "refused");
  assert.equal(life.boundary.state.kind, "unwritable", "a refusal that stores nothing proves nothing");
  await life.boundary.probe();
  assert.equal(life.boundary.state.kind, "unwritable");
  fs.mkdirSync(slots[1] ?? "");
  await life.boundary.probe();
  assert.deepEqual(life.boundary.state, { kind: "trusted" });
  assert.deepEqual(
    life.boundary.record.attempts.map(({ jobId }) => jobId),
    [startOf(1).jobId],
  );
  assert.equal(Buffer.compare(fs.readFileSync(recordIn(slots[0])), fs.readFileSync(recordIn(slots[1]))), 0);
  assert.deepEqual(await life.boundary.startAttempt(startOf(2)), { kind: "admitted" });
});

test("a damaged slot refuses every job across restarts and names the slot, until an operator resets it", async (t) => {
  const slots = slotsOf(t);
  {
    using life = await openBoundary(slots);
    await life.boundary.startAttempt(startOf(1));
  }
  fs.truncateSync(recordIn(slots[1]), 200);
  for (let restart = 0; restart < 2; restart++) {
    using life = await openBoundary(slots);
    assert.equal(life.boundary.state.kind, "untrusted");
    const started = await life.boundary.startAttempt(startOf(2));
    assert.ok(started.kind === "unable");
    assert.ok(
      started.text.includes(`${slots[1]} is damaged`) && started.text.includes("disk may be failing"),
      started.text,
    );
    await life.boundary.closeAttempt(startOf(1));
    await life.boundary.probe();
    assert.equal(life.boundary.state.kind, "untrusted");
  }
  {
    using life = await openBoundary(slots);
    await resetBoundary(life.tenant);
  }
  using life = await openBoundary(slots);
  assert.deepEqual([life.boundary.state.kind, life.boundary.record.attempts], ["trusted", []]);
  assert.deepEqual(await life.boundary.startAttempt(startOf(1)), { kind: "admitted" });
});

test("P13: a record of a newer Holdfast refuses every job, says to update, and stays as it is", async (t) => {
  const slots = slotsOf(t);
  {
    using life = await openBoundary(slots);
    await life.tenant.reset(encodeCbor([2, new Uint8Array(9)]));
  }
  const before = fs.readFileSync(recordIn(slots[0]));
  using life = await openBoundary(slots);
  assert.equal(life.boundary.state.kind, "future");
  const started = await life.boundary.startAttempt(startOf(1));
  assert.ok(started.kind === "unable" && /version 2, written by a newer Holdfast: update this one/.test(started.text));
  life.boundary.noteEvidence([{ ...(life.boundary.evidence ?? assert.fail()), sequence: 99n }]);
  assert.equal(life.boundary.state.kind, "future");
  assert.deepEqual(fs.readFileSync(recordIn(slots[0])), before);
});

test("a record that is none is not trusted, and says what is wrong", async (t) => {
  for (const [bytes, why] of [
    [encodeCbor([1, new Uint8Array(9)]), /cannot be read/],
    [encodeCbor([1, encodeCbor({})]), /cannot be read: \/\w+ is missing/],
    [new Uint8Array(0), /cannot be read/],
    [encodeCbor("text"), /cannot be read: is not \[version, bytes\]/],
  ] as const) {
    const slots = slotsOf(t);
    {
      using life = await openBoundary(slots);
      await life.tenant.reset(bytes);
    }
    using life = await openBoundary(slots);
    assert.ok(life.boundary.state.kind === "untrusted");
    assert.match(life.boundary.state.why, why);
  }
});

test("P10: all slots turned back together are found out by what this node itself once said", async (t) => {
  const slots = slotsOf(t);
  const images: Buffer[] = [];
  let said: NonNullable<Boundary["evidence"]>;
  {
    using life = await openBoundary(slots);
    await life.boundary.startAttempt(startOf(1));
    for (const slot of slots) images.push(fs.readFileSync(recordIn(slot)));
    await life.boundary.startAttempt(startOf(2));
    said = life.boundary.evidence ?? assert.fail();
  }
  for (const [index, slot] of slots.entries()) fs.writeFileSync(recordIn(slot), images[index] ?? "");
  using life = await openBoundary(slots);
  assert.deepEqual(life.boundary.state, { kind: "trusted" });
  life.boundary.noteEvidence([said]);
  assert.match(whyUntrusted(life.boundary.state), /went back in time/);
  assert.equal((await life.boundary.startAttempt(startOf(2))).kind, "unable");
});

test("what this very life acknowledged and hears of again is no rollback", async (t) => {
  const slots = slotsOf(t);
  {
    using life = await openBoundary(slots);
    await life.boundary.startAttempt(startOf(1));
  }
  using life = await openBoundary(slots);
  await life.boundary.startAttempt(startOf(2));
  life.boundary.noteEvidence([life.boundary.evidence ?? assert.fail()]);
  assert.deepEqual(life.boundary.state, { kind: "trusted" });
});

test("a rollback that is found out while a store fails or succeeds stays found out", async (t) => {
  for (const isFailing of [true, false]) {
    const slots = slotsOf(t);
    using life = await openBoundary(slots);
    await life.boundary.startAttempt(startOf(1));
    const said = life.boundary.evidence ?? assert.fail();
    using next = await reopened(life, slots);
    if (isFailing) fs.rmSync(slots[1] ?? "", { recursive: true });
    const starting = next.boundary.startAttempt(startOf(2));
    next.boundary.noteEvidence([{ ...said, sequence: said.sequence + 9n }]);
    const started = await starting;
    assert.equal(started.kind, "unable", "never admitted");
    assert.equal(next.boundary.state.kind, "untrusted");
    await next.boundary.probe();
    assert.equal(next.boundary.state.kind, "untrusted");
  }
});

async function reopened(life: Disposable, slots: readonly string[]) {
  life[Symbol.dispose]();
  return openBoundary(slots);
}

test("attempts up to the limit fit or are refused as full; nothing of it makes the record unreadable", async (t) => {
  const slots = slotsOf(t, 1);
  const wide = (number: number) => ({ ...startOf(number), launchId: `attempt-${"x".repeat(180)}-${number}` });
  const admitted: number[] = [];
  {
    using life = await openBoundary(slots);
    const started = await Promise.all(
      Array.from({ length: ATTEMPTS_MAX + 8 }, (_, number) => life.boundary.startAttempt(wide(number))),
    );
    for (const [number, each] of started.entries()) {
      if (each.kind === "admitted") admitted.push(number);
      else assert.ok(each.kind === "refused" && each.reason === "full", JSON.stringify(each));
    }
    assert.ok(admitted.length > 500 && admitted.length < ATTEMPTS_MAX, `${admitted.length}`);
  }
  using life = await openBoundary(slots);
  assert.equal(life.boundary.record.attempts.length, admitted.length);
  await life.boundary.closeAttempt(startOf(admitted[0] ?? 0));
  assert.deepEqual(await life.boundary.startAttempt(startOf(5000)), { kind: "admitted" });
});

test("an outcome or a launch id beyond its bound is refused, and the next life still trusts the record", async (t) => {
  const slots = slotsOf(t, 1);
  {
    using life = await openBoundary(slots);
    await life.boundary.startAttempt(startOf(1));
    await life.boundary.endAttempt(startOf(1), "x".repeat(65));
    const started = await life.boundary.startAttempt({ ...startOf(2), launchId: "x".repeat(201) });
    assert.equal(started.kind, "unable");
  }
  using life = await openBoundary(slots);
  assert.deepEqual(life.boundary.state, { kind: "trusted" });
  assert.deepEqual(
    life.boundary.record.attempts.map(({ outcome }) => outcome),
    [""],
  );
  assert.equal(boundaryFormat.newest, 1);
});
