// SPDX-License-Identifier: Apache-2.0
// Two controllers on one database: what one is told, the other one's long polls and tails hear at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../../src/client/client.ts";
import { startController } from "../../src/controller/controller.ts";
import { silentLog } from "../../src/std/log.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { NodeDouble } from "../kit/node-double.ts";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";

const HOUR = 3_600_000;

test("a job submitted to one controller wakes a claim that waits on the other, long before its poll", async (t) => {
  const world = await createWorld(t, { pollMs: HOUR });
  const first = await world.node("a");
  const options = {
    db: world.db,
    listenConnection: world.database.controller,
    log: silentLog,
    host: "127.0.0.1",
    port: 0,
  };
  const other = cleanupOf(t).use(await startController({ ...options, config: { pollMs: HOUR } }));
  const second = cleanupOf(t).use(await startController({ ...options, config: { pollMs: HOUR } }));
  const listening = "select 1 from pg_stat_activity where query ilike 'listen%' and datname = current_database()";
  await until("both listen", async () => (await world.sql(listening)).length === 2);
  const node = new NodeDouble({ baseUrl: second.url, nodeId: first.nodeId, credential: first.credential });
  await node.hello();
  const waiting = node.claim(1, { waitMs: 20_000 });
  await until(
    "the claim waits",
    async () => (await world.sql("select 1 from app.node where claim_number = 1")).length === 1,
  );
  const admin = createClient({ baseUrl: other.url, credential: world.token });
  const began = performance.now();
  const { id } = await admin.call("jobSubmit", { body: { command: ["true"] } });
  assert.equal((await waiting)[0]?.jobId, id);
  assert.ok(performance.now() - began < 10_000);
});
