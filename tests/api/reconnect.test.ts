// SPDX-License-Identifier: Apache-2.0
// Many agents that come back at the same moment: people are answered meanwhile, and no connection is left in a transaction.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { NodeDouble } from "../kit/node-double.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";

const AGENTS = 200;

/** Paired by the database: the way by codes is limited to a few each minute. */
async function pairMany(world: World): Promise<readonly NodeDouble[]> {
  const [row] = await world.sql<{ id: string }>("select id from app.organisation");
  const nodes = Array.from({ length: AGENTS }, (_, index) => ({
    id: world.ids("node"),
    credentialId: world.ids("cred"),
    name: `node-${index}`,
    credential: `hfn_${randomBytes(32).toString("base64url")}`,
  }));
  const column = (value: (node: (typeof nodes)[number]) => unknown) => nodes.map(value);
  await world.sql(
    `insert into app.node (organisation_id, id, name, public_key)
     select $1, id, name, sha256(id::bytea) from unnest($2::text[], $3::text[]) as n(id, name)`,
    [row?.id, column((node) => node.id), column((node) => node.name)],
  );
  await world.sql(
    `insert into app.credential (organisation_id, id, kind, name, node_id, hash, scopes)
     select $1, id, 'node', name, node_id, hash, '{node:heartbeat,node:claim,node:report}'
       from unnest($2::text[], $3::text[], $4::text[], $5::bytea[]) as c(id, name, node_id, hash)`,
    [
      row?.id,
      column((node) => node.credentialId),
      column((node) => node.name),
      column((node) => node.id),
      column((node) => createHash("sha256").update(node.credential).digest()),
    ],
  );
  return nodes.map(({ id, credential }) => new NodeDouble({ baseUrl: world.url, nodeId: id, credential }));
}

test("200 agents that reconnect at once: the overview answers meanwhile, and no backend is left idle in a transaction", async (t) => {
  const world = await createWorld(t, { pollMs: 1_000, heartbeatMs: 60_000, startWithinMs: 120_000 });
  const nodes = await pairMany(world);
  for (let job = 0; job < 20; job++) await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const over = new AbortController();
  const tookMs: number[] = [];
  let idle = 0;
  const people = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const began = performance.now();
      await world.admin.call("overview", {});
      tookMs.push(performance.now() - began);
      const [row] = await world.sql<{ n: number }>(
        `select count(*)::int as n from pg_stat_activity
          where datname = current_database() and state like 'idle in transaction%' and state_change < now() - interval '10 seconds'`,
      );
      idle = Math.max(idle, row?.n ?? 0);
    }
  };
  const watching = people();
  const claimed = await Promise.all(
    nodes.map(async (node) => {
      await node.hello();
      const jobs = await node.claim(1, { waitMs: 500 });
      await node.heartbeat();
      return jobs.length;
    }),
  );
  over.abort();
  await watching;
  assert.equal(
    claimed.reduce((sum, count) => sum + count, 0),
    20,
  );
  assert.equal(idle, 0);
  assert.ok(tookMs.length >= 3, `${tookMs.length} overviews`);
  assert.equal((await world.admin.call("overview", {})).nodes.online, AGENTS);
  await until("no backend is in a transaction", async () => {
    const rows = await world.sql(
      "select 1 from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'",
    );
    return rows.length === 0;
  });
  const sorted = tookMs.toSorted((a, b) => a - b);
  t.diagnostic(`${sorted.length} overviews, the slowest ${Math.round(sorted.at(-1) ?? 0)} ms`);
});
