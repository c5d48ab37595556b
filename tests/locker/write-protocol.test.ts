// SPDX-License-Identifier: Apache-2.0
// The write protocol under a mishap at every single step: the n-th effect is where the process dies, the power fails or a
// system call does, for n = 1, 2, … until a run passes. After each, a load adopts the old record or the new one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SINGLE_MISHAPS } from "../sim/run.ts";
import { runLocker } from "../sim/locker-suite.ts";
import { append, envelopeIn, machine, NAME, textOf } from "./kit.ts";

test("P10: whatever step of a store fails or dies, the next load adopts the old record or the new one, and an acknowledged one is never lost", async () => {
  for (const slots of [1, 2, 3])
    for (const mishap of SINGLE_MISHAPS) {
      const seen = new Set<string>();
      for (let at = 1; ; at++) {
        const { disks, live } = machine(slots, at);
        const first = live();
        await first.drive(first.tenant.load());
        await first.drive(first.tenant.store(append("old")));
        first.mishaps.set(first.steps.count + at, mishap);
        const stored = await first.drive(
          first.tenant.store(append(" new")).then(
            () => true,
            () => false,
          ),
        );
        const place = `${slots} slots, ${mishap.kind} ${mishap.isAfter ? "after" : "before"} step ${at}`;
        const distinct = new Set(
          disks
            .flatMap((disk) => [envelopeIn(disk)?.bytes, disk.lasting(NAME)])
            .map((bytes) => Buffer.from(bytes ?? []).toString("hex")),
        );
        assert.ok(distinct.size <= 2, place);
        const second = live();
        const loaded = await second.drive(second.tenant.load());
        assert.ok(
          loaded !== "life over" && loaded.kind === "adopted",
          `${place}: ${loaded === "life over" ? loaded : loaded.kind}`,
        );
        const record = textOf(loaded.record);
        assert.ok(record === "old" || record === "old new", `${place}: ${record}`);
        if (stored === true) assert.equal(record, "old new", place);
        seen.add(record);
        await second.drive(second.tenant.store(append(".")));
        for (const disk of disks) assert.equal(textOf(envelopeIn(disk)?.record), `${record}.`, place);
        if (at > slots * 3) break;
      }
      assert.ok(seen.has("old new"));
      if (mishap.kind !== "error") assert.ok(seen.has("old"), "some step leaves the old record");
    }
});

test("P10: lives of many stores with one mishap at every step in turn keep every promise", async () => {
  for (const seed of [1, 2, 3, 4, 5, 6])
    for (const mishap of SINGLE_MISHAPS)
      for (let at = 1; ; at++) {
        const { violation, steps } = await runLocker({ seed, single: { at, mishap } });
        assert.equal(violation, undefined, `seed ${seed}, ${JSON.stringify(mishap)} at ${at}`);
        if (at > steps) break;
      }
});
