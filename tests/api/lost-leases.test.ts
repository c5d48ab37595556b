// SPDX-License-Identifier: Apache-2.0
// Leases between two worlds: an old one beside its heir, ends that nobody reports, drains and cancels at the wrong moment.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";

const command = ["true"];

test("P3: a node that has both an old lease of a job and its heir is told of each what it is", async (t) => {
  const world = await createWorld(t, { leaseMs: 200, retryBaseMs: 10 });
  const node = await world.node("a");
  const { id } = await world.admin.call("jobSubmit", { body: { command } });
  const [old] = await node.claim(1);
  assert.ok(old !== undefined);
  await node.start(id, old.epoch);
  const heir = await until("claimed again", async () => (await node.claim(1, { waitMs: 500 }))[0]);
  assert.equal(await node.start(id, heir.epoch), "done");
  const leases = [old, heir].map(({ jobId, epoch }) => ({ jobId, epoch }));
  const renewed = await node.client.call("nodeRenewals", { body: { sessionId: node.sessionId, leases } });
  assert.deepEqual(
    renewed.verdicts.map((verdict) => verdict.verdict),
    ["stale_epoch", "done"],
  );
  assert.equal(await node.end(id, old.epoch, { result: { late: true } }), "stale_epoch");
  const hello = await node.hello(leases);
  assert.deepEqual(
    hello.verdicts.map((verdict) => verdict.verdict),
    ["stale_epoch", "done"],
  );
  assert.equal(await node.end(id, heir.epoch), "done");
});

test("P11: a job whose node begins anew each time before it starts does not go round for ever", async (t) => {
  const world = await createWorld(t, { retryBaseMs: 10 });
  const node = await world.node("a");
  const { id } = await world.admin.call("jobSubmit", {
    body: { command, retry: { maxAttempts: 1, onFailure: false } },
  });
  let claims = 0;
  await until("the job is dead", async () => {
    claims += (await node.claim(1, { waitMs: 100 })).length;
    await node.hello();
    return (await world.admin.call("jobShow", { params: { jobId: id } })).state === "dead";
  });
  assert.equal(claims, 5);
  await world.assertLedgers();
});

test("P11: an interruption uses the attempt, also when the start was never reported", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const { id } = await world.admin.call("jobSubmit", {
    body: { command, retry: { maxAttempts: 1, onFailure: false } },
  });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  const outcome = { kind: "interrupted", message: "the machine was restarted" } as const;
  const ending = {
    jobId: id,
    epoch: lease.epoch,
    outcome,
    stopped: null,
    startedAt: null,
    endedAt: null,
    message: null,
  };
  await node.client.call("nodeEnding", { body: { sessionId: node.sessionId, ending } });
  assert.equal((await world.admin.call("jobShow", { params: { jobId: id } })).state, "dead");
});

test("a drain that is committed while a claim waits for its turn counts for that claim", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  await world.admin.call("jobSubmit", { body: { command } });
  await world.sql("begin");
  await world.sql("select from app.node where id = $1 for update", [node.nodeId]);
  const claim = node.claim(1);
  await until("the claim waits for the row", async () => {
    await world.sql("select pg_stat_clear_snapshot()");
    const rows = await world.sql(
      "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return rows.length > 0;
  });
  await world.sql("update app.node set status = 'draining' where id = $1", [node.nodeId]);
  await world.sql("commit");
  assert.deepEqual(await claim, []);
});

test("a cancel of a job that is waiting again ends it, also when an earlier cancel was overtaken", async (t) => {
  const world = await createWorld(t);
  const { id } = await world.admin.call("jobSubmit", { body: { command } });
  await world.sql("update app.job set cancel_requested = true where id = $1", [id]);
  assert.equal((await world.admin.call("jobCancel", { params: { jobId: id } })).state, "cancelled");
});

test("a thousand lanes that do not fit hide none that does, and the most urgent lane comes first", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const submit = (memoryBytes: number, priority: number) =>
    world.admin.call("jobSubmit", { body: { command, priority, requires: { memoryBytes } } });
  const [template] = [await submit(2 ** 50, 0)];
  assert.ok(template !== undefined);
  await world.sql(
    `with made as (
       insert into app.lane (organisation_id, id, key, requirement)
       select organisation_id, 'lane_00' || lpad(n::text, 24, '0'), sha256(n::text::bytea), jsonb_build_object('memoryBytes', (2^50)::bigint + n)
         from app.job, generate_series(1, 1100) n where id = $1 returning organisation_id, id)
     insert into app.job (organisation_id, id, lane_id, state, max_attempts, retry_on_failure)
     select organisation_id, 'job_' || substr(id, 6), id, 'queued', 1, false from made`,
    [template.id],
  );
  for (let lane = 1; lane <= 70; lane++) await submit(lane, 0);
  const urgent = await submit(1000, 100);
  assert.equal((await node.claim(1))[0]?.jobId, urgent.id);
});

test("a caller who hangs up while its credential is looked up gets no lease", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const body = JSON.stringify({ sessionId: node.sessionId, number: 1, max: 1, waitMs: 20_000 });
  const { connect } = await import("node:net");
  const { port } = new URL(world.url);
  for (let caller = 0; caller < 20; caller++) {
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), "127.0.0.1", () => {
        const head = `POST /v1/node/claims HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${node.credential}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
        socket.write(head + body, () => socket.destroy());
        socket.once("close", () => resolve());
      });
    });
  }
  const { id } = await world.admin.call("jobSubmit", { body: { command } });
  const claimed = await until(
    "a caller who waits gets it",
    async () => (await node.claim(1, { number: 2, waitMs: 500 }))[0],
  );
  assert.equal(claimed.jobId, id);
  const { events } = await world.admin.call("jobEvents", { params: { jobId: id } });
  assert.deepEqual(
    events.map((event) => event.kind),
    ["created", "claimed"],
  );
});
