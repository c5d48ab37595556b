// SPDX-License-Identifier: Apache-2.0
// A schema that changes under a running controller: neither nodes nor people see anything of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";

/** What a later migration may do without stopping anybody: columns come, types become wider, indexes come and go. */
const CHANGES = [
  "alter table app.job add column later_note text",
  "alter table app.job alter column attempt type integer",
  "alter table app.attempt add column later_note text not null default ''",
  "alter table app.job_body alter column time_limit_ms type numeric",
  "create index later_index on app.job (created_at)",
  "alter table app.node add column later_note jsonb",
  "alter table app.job alter column exit_code type integer",
  "drop index app.later_index",
];

test("columns and types that change while nodes claim, start and end: no error reaches anybody, and each job runs once", async (t) => {
  const world = await createWorld(t, { leaseMs: 60_000, startWithinMs: 60_000 });
  const nodes = await Promise.all(["a", "b", "c"].map((name) => world.node(name)));
  const stop = new AbortController();
  const submitted = new Set<string>();
  const ended = new Set<string>();
  const person = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
      submitted.add(id);
      await world.admin.call("overview", {});
      await until("the queue is short", () => submitted.size - ended.size < 30);
    }
  };
  const work = async (node: (typeof nodes)[number]): Promise<void> => {
    while (!stop.signal.aborted || ended.size < submitted.size) {
      for (const { jobId, epoch } of await node.claim(4, { waitMs: 50 })) {
        assert.equal(await node.start(jobId, epoch), "done");
        assert.equal((await node.renew(jobId, epoch)).verdict, "done");
        assert.equal(await node.end(jobId, epoch), "done");
        assert.ok(!ended.has(jobId));
        ended.add(jobId);
      }
      await node.heartbeat();
    }
  };
  const all = Promise.all([person(), person(), ...nodes.map(work)]);
  all.catch(() => stop.abort());
  for (const change of CHANGES) {
    if (stop.signal.aborted) break;
    const before = ended.size;
    await world.sql(change);
    await until("jobs end under the new schema", () => stop.signal.aborted || ended.size >= before + 8);
  }
  stop.abort();
  await all;
  assert.deepEqual(ended, submitted);
  const rows = await world.sql<{ kinds: string }>(
    "select string_agg(kind, ',' order by seq) as kinds from app.job_event group by job_id",
  );
  assert.deepEqual(new Set(rows.map((row) => row.kinds)), new Set(["created,claimed,started,succeeded"]));
  await world.assertLedgers();
});
