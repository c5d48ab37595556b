// SPDX-License-Identifier: Apache-2.0
// The statements of a claim on a deep, just analysed queue: their plans go by the claim index and never over the backlog.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CLAIM, WAITING_LANES } from "../../src/controller/jobs/claim-store.ts";
import { createWorld } from "../kit/world.ts";

test("a claim reads a deep queue by its index: no scan of all jobs, no sort of the backlog", async (t) => {
  const world = await createWorld(t, { heartbeatMs: 600_000 });
  const node = await world.node("anna");
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await world.sql(
    `insert into app.job (organisation_id, id, lane_id, state, max_attempts, retry_on_failure)
     select organisation_id, 'job_00' || lpad(n::text, 24, '0'), lane_id, 'queued', 1, false from app.job, generate_series(1, 20000) n
      where id = $1`,
    [id],
  );
  await world.sql("vacuum analyze app.job");
  const [row] = await world.sql<{ organisation_id: string; lane_id: string }>(
    "select organisation_id, lane_id from app.job limit 1",
  );
  assert.ok(row !== undefined);
  const statements: readonly (readonly [string, string, readonly unknown[]])[] = [
    ["waiting lanes", WAITING_LANES, [4, node.nodeId, "x64", 2 ** 34, null, [], 0]],
    ["claim", CLAIM, [[row.lane_id], [1], [null], node.nodeId, node.sessionId, 1, 15_000]],
  ];
  await world.db.tenant({ organisationId: row.organisation_id, scopes: [] }, async (tx) => {
    for (const [what, statement, params] of statements) {
      const { rows } = await tx.query<{ "QUERY PLAN": string }>(`explain (costs off) ${statement}`, [...params]);
      const plan = rows.map((line) => line["QUERY PLAN"]).join("\n");
      assert.match(plan, /Index (Only )?Scan using job_claim on job/, what);
      assert.doesNotMatch(plan, /Seq Scan on job\b|Bitmap Heap Scan on job\b/, `${what}\n${plan}`);
      assert.doesNotMatch(plan, /Sort Key: (j|job)(_\d+)?\.turn/, `${what}\n${plan}`);
    }
  });
});
