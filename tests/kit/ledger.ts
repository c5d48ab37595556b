// SPDX-License-Identifier: Apache-2.0
// What must be true of every ledger at the end, whatever happened before: no gap, no epoch that fell, one claim and at most
// one start for each attempt, one end.

import assert from "node:assert/strict";
import type pg from "pg";

type Entry = { readonly seq: number; readonly kind: string; readonly epoch: string };

type Row = {
  readonly id: string;
  readonly state: string;
  readonly seq: number;
  readonly attempts: string;
  readonly events: readonly Entry[];
};

export type Counts = { readonly jobs: number; readonly claimed: number; readonly started: number };

/** Of each job of the database; all must have succeeded. */
export async function assertEachOnce(owner: pg.Client): Promise<Counts> {
  const { rows } = await owner.query<Row>(
    `select j.id, j.state, j.seq, (select count(*) from app.attempt a where a.job_id = j.id) as attempts,
            (select json_agg(json_build_object('seq', e.seq, 'kind', e.kind, 'epoch', e.epoch::text) order by e.seq)
               from app.job_event e where e.job_id = j.id) as events
       from app.job j`,
  );
  let [claimed, started] = [0, 0];
  for (const { id, state, seq, attempts, events } of rows) {
    const story = `${id}: ${events.map((event) => `${event.kind}@${event.epoch}`).join(" ")}`;
    const of = (...kinds: readonly string[]) => events.filter(({ kind }) => kinds.includes(kind));
    const epochsOf = (kind: string) => of(kind).map(({ epoch }) => epoch);
    assert.equal(state, "succeeded", story);
    assert.deepEqual(
      events.map((event) => event.seq),
      Array.from({ length: seq }, (_, index) => index + 1),
      story,
    );
    for (const [index, { epoch }] of events.entries())
      assert.ok(BigInt(epoch) >= BigInt(events[index - 1]?.epoch ?? "0"), `an epoch fell: ${story}`);
    assert.equal(of("claimed").length, Number(attempts), `claims and attempts: ${story}`);
    assert.equal(new Set(epochsOf("claimed")).size, of("claimed").length, `two claims of one epoch: ${story}`);
    assert.equal(new Set(epochsOf("started")).size, of("started").length, `two starts of one lease: ${story}`);
    assert.equal(of("succeeded", "failed", "cancelled", "dead").length, 1, `ends: ${story}`);
    claimed += of("claimed").length;
    started += of("started").length;
  }
  return { jobs: rows.length, claimed, started };
}
