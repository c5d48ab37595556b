// SPDX-License-Identifier: Apache-2.0
// How the locker stores: the order of the write protocol, group commit, changes that throw, repair by the very bytes, and what
// it says of itself to others.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Evidence, isRolledBack, Locker } from "../../src/locker/locker.ts";
import { codeOf } from "../../src/std/errors.ts";
import { settled } from "../sim/steps.ts";
import { append, envelopeIn, fingerprint, machine, NAME, textOf } from "./kit.ts";

test("P10: a store is acknowledged when every slot holds it for good, slot by slot: write, rename, flush", async () => {
  const { disks, live } = machine(3);
  const { tenant, steps, drive } = live();
  await drive(tenant.load());
  const from = steps.trail.length;
  await drive(tenant.store(append("a")));
  const order = [0, 1, 2].flatMap((slot) => ["write", "rename", "flush"].map((step) => `slot-${slot}: ${step}`));
  assert.deepEqual(steps.trail.slice(from), order);
  for (const disk of disks)
    assert.equal(
      Buffer.compare(disk.lasting(NAME) ?? new Uint8Array(), envelopeIn(disk)?.bytes ?? new Uint8Array()),
      0,
    );
});

test("32 stores together share one write, each seeing what those before it made", async () => {
  const { disks, live } = machine(2);
  const { tenant, steps, drive } = live();
  await drive(tenant.load());
  const before = steps.count;
  const seen: string[] = [];
  const stores = Array.from({ length: 32 }, () =>
    tenant.store((record) => {
      seen.push(textOf(record));
      return append("x")(record);
    }),
  );
  await drive(Promise.all(stores));
  assert.equal(steps.count - before, 6);
  assert.deepEqual(
    seen,
    Array.from({ length: 32 }, (_, index) => "x".repeat(index)),
  );
  assert.equal(textOf(envelopeIn(disks[1] ?? assert.fail())?.record), "x".repeat(32));
  assert.equal(tenant.evidence?.sequence, 1n);
});

test("a change that throws, makes nothing or makes too much leaves the others of its write alone", async () => {
  const { disks, live } = machine(1);
  const { tenant, drive } = live();
  await drive(tenant.load());
  const fault = new Error("no");
  const outcomes = await drive(
    Promise.allSettled([
      tenant.store(append("a")),
      tenant.store(() => {
        throw fault;
      }),
      tenant.store(() => undefined),
      tenant.store(() => new Uint8Array(256 * 1024 + 1)),
      tenant.store(append("b")),
    ]),
  );
  assert.ok(outcomes !== "life over");
  assert.deepEqual(
    outcomes.map((outcome) =>
      outcome.status === "fulfilled" ? "ok" : codeOf(outcome.reason) || (outcome.reason as unknown),
    ),
    ["ok", fault, "ok", "record_full", "ok"],
  );
  assert.equal(textOf(envelopeIn(disks[0] ?? assert.fail())?.record), "ab");
});

test("a store that fails names the slot and the errno, has not happened for those after it, and its number is never used again", async () => {
  const { disks, live } = machine(2);
  const { tenant, steps, mishaps, drive } = live();
  await drive(tenant.load());
  await drive(tenant.store(append("a")));
  mishaps.set(steps.count + 4, { kind: "error", code: "ENOSPC", isAfter: false });
  await assert.rejects(drive(tenant.store(append("b"))), {
    code: "store_failed",
    message: /^slot-1\/tenant could not be written \(ENOSPC\): check this disk$/,
  });
  assert.deepEqual(
    disks.map((disk) => textOf(envelopeIn(disk)?.record)),
    ["ab", "a"],
  );
  await drive(tenant.store(append("c")));
  assert.deepEqual(
    disks.map((disk) => [textOf(envelopeIn(disk)?.record), envelopeIn(disk)?.sequence]),
    [
      ["ac", 3n],
      ["ac", 3n],
    ],
  );
});

test("before the store after a failed one, the torn envelope goes into every slot as it is: never three at once", async () => {
  const { disks, live } = machine(3);
  const { tenant, steps, mishaps, drive } = live();
  await drive(tenant.load());
  await drive(tenant.store(append("a")));
  mishaps.set(steps.count + 4, { kind: "error", code: "EIO", isAfter: false });
  await assert.rejects(drive(tenant.store(append("b"))));
  const torn = envelopeIn(disks[0] ?? assert.fail());
  const store = tenant.store(append("c"));
  const seen: string[][] = [];
  await settled();
  for (let step = 0; step < 18; step++) {
    await steps.next();
    seen.push(disks.map((disk) => textOf(envelopeIn(disk)?.record)));
  }
  await store;
  assert.deepEqual(seen[8], ["ab", "ab", "ab"]);
  assert.ok(seen.every((records) => new Set(records).size <= 2));
  assert.deepEqual(envelopeIn(disks[2] ?? assert.fail())?.parent, torn?.digest);
});

test("repair copies the winner's very bytes, also over a slot that was blank, before any store", async () => {
  const { disks, live } = machine(3);
  const first = live();
  await first.drive(first.tenant.load());
  await first.drive(first.tenant.store(append("a")));
  first.mishaps.set(first.steps.count + 4, { kind: "kill", isAfter: false });
  await first.drive(first.tenant.store(append("b")));
  disks[2]?.wipe();
  const winner = envelopeIn(disks[0] ?? assert.fail())?.bytes ?? assert.fail();
  const second = live();
  const loaded = await second.drive(second.tenant.load());
  assert.ok(loaded !== "life over" && loaded.kind === "adopted");
  assert.equal(textOf(loaded.record), "ab");
  for (const disk of disks) assert.equal(Buffer.compare(disk.lasting(NAME) ?? new Uint8Array(), winner), 0, disk.place);
});

test("a slot that cannot be repaired lets what was read be used, and makes every store fail until it can be written", async () => {
  const { disks, live } = machine(2);
  const first = live();
  await first.drive(first.tenant.load());
  await first.drive(first.tenant.store(append("a")));
  disks[1]?.wipe();
  const { tenant, mishaps, drive } = live();
  for (let step = 1; step < 40; step++) mishaps.set(step, { kind: "error", code: "EIO", isAfter: false });
  for (const read of [1, 2]) mishaps.delete(read);
  const loaded = await drive(tenant.load());
  assert.ok(loaded !== "life over" && loaded.kind === "adopted");
  assert.equal(tenant.evidence, undefined, "nothing is said of what not every slot holds");
  await assert.rejects(drive(tenant.store(append("b"))), { code: "store_failed" });
  mishaps.clear();
  await drive(tenant.store(append("c")));
  assert.equal(textOf(envelopeIn(disks[1] ?? assert.fail())?.record), "ac");
});

test("what the life before renamed and did not flush is flushed before anything is built on it", async () => {
  for (const slots of [1, 2, 3]) {
    const { disks, live } = machine(slots);
    const first = live();
    await first.drive(first.tenant.load());
    first.mishaps.set(first.steps.count + slots * 3, { kind: "kill", isAfter: false });
    await first.drive(first.tenant.store(append("a")));
    const second = live();
    const loaded = await second.drive(second.tenant.load());
    assert.ok(loaded !== "life over" && loaded.kind === "adopted");
    const said = second.tenant.evidence ?? assert.fail();
    for (const disk of disks) disk.cutPower(false);
    const third = live();
    const again = await third.drive(third.tenant.load());
    assert.ok(again !== "life over" && again.kind === "adopted", `${slots} slots`);
    assert.equal(isRolledBack(again, [said]), false);
  }
});

test("a new life writes with a nonce of its own over the envelope that it adopted", async () => {
  const { disks, live } = machine(2);
  const first = live();
  await first.drive(first.tenant.load());
  await first.drive(first.tenant.store(append("a")));
  const [before] = disks.map(envelopeIn);
  const second = live();
  await second.drive(second.tenant.load());
  await second.drive(second.tenant.store(append("b")));
  const [after] = disks.map(envelopeIn);
  assert.notDeepEqual(after?.nonce, before?.nonce);
  assert.deepEqual([after?.lineage, after?.parent, after?.sequence], [before?.lineage, before?.digest, 2n]);
});

test("stores that come while a slow one is written keep their order: no straggler overwrites a newer record", async () => {
  const { disks, live } = machine(2);
  const { tenant, steps, drive } = live();
  await drive(tenant.load());
  const slow = tenant.store(append("1"));
  await settled();
  await steps.next();
  await steps.next();
  const later = ["2", "3", "4"].map((text) => tenant.store(append(text)));
  const sequences: bigint[] = [];
  for (let step = 0; step < 10; step++) {
    await steps.next();
    for (const disk of disks) sequences.push(envelopeIn(disk)?.sequence ?? 0n);
  }
  await Promise.all([slow, ...later]);
  assert.deepEqual(
    disks.map((disk) => textOf(envelopeIn(disk)?.record)),
    ["1234", "1234"],
  );
  for (const slot of [0, 1]) {
    const own = sequences.filter((_, index) => index % 2 === slot);
    assert.deepEqual(
      own,
      own.toSorted((a, b) => Number(a - b)),
    );
  }
});

test("a reset draws a new lineage; one that fails half-way lets nothing be stored", async () => {
  const { disks, live } = machine(2);
  const { tenant, steps, mishaps, drive } = live();
  await drive(tenant.load());
  await drive(tenant.store(append("a")));
  const before = tenant.evidence ?? assert.fail();
  mishaps.set(steps.count + 4, { kind: "error", code: "EIO", isAfter: false });
  await assert.rejects(drive(tenant.reset(Buffer.from("new"))), { code: "store_failed" });
  await assert.rejects(tenant.store(append("b")), /bug: a store into tenant before its load/);
  await drive(tenant.reset(Buffer.from("new")));
  await drive(tenant.store(append("!")));
  assert.deepEqual(
    disks.map((disk) => textOf(envelopeIn(disk)?.record)),
    ["new!", "new!"],
  );
  assert.notDeepEqual(tenant.evidence?.lineage, before.lineage);
  assert.equal(tenant.evidence?.sequence, 2n);
});

test("P10: evidence of more, of another envelope with this sequence, or of a later lineage is a rollback; of less, or beside an empty slot, it is none", () => {
  const version = { lineage: new Uint8Array(16).fill(1), sequence: 5n, digest: new Uint8Array(32).fill(1) };
  const loaded = { kind: "adopted", record: new Uint8Array(), ...version } as const;
  const cases: readonly (readonly [Partial<Evidence>, boolean])[] = [
    [{ sequence: 6n }, true],
    [{}, false],
    [{ sequence: 4n }, false],
    [{ digest: new Uint8Array(32) }, true],
    [{ sequence: 4n, digest: new Uint8Array(32) }, false],
    [{ lineage: new Uint8Array(16), sequence: 6n }, false],
    [{ isSuperseded: true, sequence: 1n }, true],
    [{ lineage: new Uint8Array(16), isSuperseded: true }, false],
  ];
  for (const [differs, expected] of cases)
    assert.equal(isRolledBack(loaded, [{ ...version, ...differs }]), expected, Object.keys(differs).join());
  assert.equal(isRolledBack({ kind: "empty" }, [{ ...version, sequence: 6n }]), false);
  assert.equal(isRolledBack(loaded, []), false);
});

test("a locker without a slot, which would acknowledge what nobody holds, is a bug", () => {
  const { chance } = machine(1);
  assert.throws(() => new Locker({ slots: [], fingerprint, random: chance }), /bug: a locker has a slot at least/);
});
