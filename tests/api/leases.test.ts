// SPDX-License-Identifier: Apache-2.0
// Leases over the real routes: one claim one attempt (P1), return by the sweep (P2), fencing (P3), and nothing lost (P11).

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";

const command = ["true"];

test("P1: claims that race never get the same attempt, counted by claimed events", async (t) => {
  const world = await createWorld(t);
  const nodes = await Promise.all(["a", "b", "c", "d"].map((name) => world.node(name)));
  const ids = new Set<string>();
  for (let job = 0; job < 120; job++) ids.add((await world.admin.call("jobSubmit", { body: { command } })).id);
  const got: string[] = [];
  await Promise.all(
    nodes.map(async (node) => {
      for (let idle = 0; idle < 3; ) {
        const jobs = await node.claim(7);
        idle = jobs.length === 0 ? idle + 1 : 0;
        got.push(...jobs.map((job) => job.jobId));
      }
    }),
  );
  assert.equal(got.length, 120);
  assert.deepEqual(new Set(got), ids);
  const rows = await world.sql<{ job_id: string; claims: string }>(
    "select job_id, count(*) as claims from app.job_event where kind = 'claimed' group by job_id",
  );
  assert.equal(rows.length, 120);
  assert.ok(rows.every((row) => row.claims === "1"));
});

test("P2: a lease that runs out returns its job to another node, with the attempt used", async (t) => {
  const world = await createWorld(t, { leaseMs: 300 });
  const [first, second] = [await world.node("first"), await world.node("second")];
  const job = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await first.claim(1);
  assert.ok(lease !== undefined);
  assert.equal(await first.start(job.id, lease.epoch), "done");
  const again = await until("the second node gets the job", async () => (await second.claim(1, { waitMs: 500 }))[0]);
  assert.equal(again.jobId, job.id);
  assert.equal(again.attempt, 2);
  assert.ok(BigInt(again.epoch) > BigInt(lease.epoch));
});

test("P3: a late completion is refused and changes nothing, byte for byte", async (t) => {
  const world = await createWorld(t, { leaseMs: 200 });
  const [zombie, heir] = [await world.node("zombie"), await world.node("heir")];
  const job = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await zombie.claim(1);
  assert.ok(lease !== undefined);
  await zombie.start(job.id, lease.epoch);
  const again = await until("the heir has the job", async () => (await heir.claim(1, { waitMs: 500 }))[0]);
  await heir.start(job.id, again.epoch);
  // However slow this machine is: from here on the heir holds it.
  await world.sql("update app.job set lease_until = now() + interval '1 hour' where lease_until is not null");
  const everything = () =>
    world.sql(
      `select (select json_agg(j order by j.id) from app.job j) as jobs, (select json_agg(b order by b.job_id) from app.job_body b) as bodies,
              (select json_agg(e order by e.job_id, e.seq) from app.job_event e) as events, (select json_agg(a order by a.job_id, a.epoch) from app.attempt a) as attempts,
              (select json_agg(l order by l.job_id, l.epoch, l.number) from app.job_log l) as logs`,
    );
  const before = JSON.stringify(await everything());
  assert.equal(await zombie.end(job.id, lease.epoch, { result: { late: true } }), "stale_epoch");
  assert.equal((await zombie.log(job.id, lease.epoch, { offset: 0, text: "late" })).verdict, "stale_epoch");
  assert.equal(await zombie.start(job.id, lease.epoch), "stale_epoch");
  assert.equal((await zombie.renew(job.id, lease.epoch)).verdict, "stale_epoch");
  // A zombie that guesses the new epoch still is not its holder.
  assert.equal(await zombie.end(job.id, again.epoch), "not_yours");
  assert.equal((await zombie.log(job.id, again.epoch, { offset: 0, text: "late" })).verdict, "not_yours");
  assert.equal(JSON.stringify(await everything()), before);
  assert.equal(await heir.end(job.id, again.epoch, { result: { real: true } }), "done");
  const ended = await world.admin.call("jobShow", { params: { jobId: job.id } });
  assert.deepEqual([ended.state, ended.result], ["succeeded", { real: true }]);
  assert.equal(await heir.end(job.id, again.epoch, { result: { real: true } }), "already_ended");
});

test("a healthy renewal keeps a job through many sweeps, and the attempt stays 1", async (t) => {
  const world = await createWorld(t, { leaseMs: 1_000, sweepMs: 20 });
  const [holder, other] = [await world.node("holder"), await world.node("other")];
  const job = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await holder.claim(1);
  assert.ok(lease !== undefined);
  await holder.start(job.id, lease.epoch);
  const end = performance.now() + 4_000;
  for (let renewals = 0; performance.now() < end; renewals++) {
    assert.equal((await holder.renew(job.id, lease.epoch)).verdict, "done");
    assert.deepEqual(await other.claim(1, { waitMs: 50 }), []);
  }
  const shown = await world.admin.call("jobShow", { params: { jobId: job.id } });
  assert.deepEqual([shown.state, shown.attempt], ["running", 1]);
});

test("a claim that never starts returns without using an attempt, five times; then it counts", async (t) => {
  const world = await createWorld(t, { startWithinMs: 60, retryBaseMs: 10 });
  const node = await world.node("silent");
  const job = await world.admin.call("jobSubmit", { body: { command, retry: { maxAttempts: 2, onFailure: false } } });
  const attempts: number[] = [];
  await until("the job is dead", async () => {
    attempts.push(...(await node.claim(1, { waitMs: 200 })).map((claimed) => claimed.attempt));
    return (await world.admin.call("jobShow", { params: { jobId: job.id } })).state === "dead";
  });
  assert.deepEqual(attempts, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
  await world.assertLedgers();
});

test("an answer that was lost is delivered again to a repeat of its number, and to nothing else", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  for (let job = 0; job < 3; job++) await world.admin.call("jobSubmit", { body: { command } });
  const first = await node.claim(2, { number: 1 });
  const repeat = await node.claim(2, { number: 1 });
  assert.deepEqual(
    repeat.map((job) => [job.jobId, job.epoch]),
    first.map((job) => [job.jobId, job.epoch]),
  );
  const next = await node.claim(2, { number: 2 });
  assert.equal(next.length, 1);
  assert.ok(!first.some((job) => job.jobId === next[0]?.jobId));
  assert.deepEqual(await node.claim(2, { number: 1 }), [], "a number that was overtaken gets nothing");
});

test("an agent that starts anew keeps what it still holds; the rest goes back at once", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const [kept, lost] = [
    await world.admin.call("jobSubmit", { body: { command } }),
    await world.admin.call("jobSubmit", { body: { command } }),
  ];
  const leases = await node.claim(2);
  for (const lease of leases) await node.start(lease.jobId, lease.epoch);
  const old = node.sessionId;
  const keptLease = leases.find((lease) => lease.jobId === kept.id);
  assert.ok(keptLease !== undefined);
  const reply = await node.hello([{ jobId: keptLease.jobId, epoch: keptLease.epoch }]);
  assert.equal(reply.verdicts[0]?.verdict, "done");
  assert.equal((await node.renew(kept.id, keptLease.epoch)).verdict, "done");
  const again = await until("the other job is claimed anew", async () => (await node.claim(1, { waitMs: 500 }))[0]);
  assert.equal(again.jobId, lost.id);
  const body = { sessionId: old, facts: node.facts, now: new Date().toISOString() };
  await assert.rejects(node.client.call("nodeHeartbeat", { body }), { code: "session_superseded" });
});

test("a cancel reaches a running job with the next renewal, and a waiting one at once", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const running = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(running.id, lease.epoch);
  const waiting = await world.admin.call("jobSubmit", { body: { command } });
  assert.equal((await world.admin.call("jobCancel", { params: { jobId: waiting.id } })).state, "cancelled");
  assert.deepEqual(await node.claim(1), []);
  assert.equal((await world.admin.call("jobCancel", { params: { jobId: running.id } })).cancelRequested, true);
  assert.deepEqual((await node.renew(running.id, lease.epoch)).cancel, [{ jobId: running.id, epoch: lease.epoch }]);
  assert.equal(await node.end(running.id, lease.epoch, { exitCode: 143, stopped: "cancel" }), "done");
  assert.equal((await world.admin.call("jobShow", { params: { jobId: running.id } })).state, "cancelled");
  await assert.rejects(world.admin.call("jobCancel", { params: { jobId: (await succeeded(world)).id } }), {
    code: "conflict",
  });
});

async function succeeded(world: Awaited<ReturnType<typeof createWorld>>) {
  const node = await world.node("quick");
  const job = await world.admin.call("jobSubmit", { body: { command, requires: { nodeId: node.nodeId } } });
  const lease = await until("claimed", async () => (await node.claim(1, { waitMs: 500 }))[0]);
  await node.start(job.id, lease.epoch);
  await node.end(job.id, lease.epoch);
  return job;
}

test("a drained node claims nothing and is told so; what it holds is not cancelled", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const job = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(job.id, lease.epoch);
  await world.admin.call("nodeDrain", { params: { nodeId: node.nodeId } });
  await world.admin.call("jobSubmit", { body: { command } });
  assert.deepEqual(await node.claim(1), []);
  assert.deepEqual(await node.renew(job.id, lease.epoch), { verdict: "done", cancel: [], drain: true });
  assert.equal((await node.heartbeat()).drain, true);
  await world.admin.call("nodeActivate", { params: { nodeId: node.nodeId } });
  assert.equal((await node.claim(1)).length, 1);
});

test("a retired node's credential is refused on the next request, and its leases go back", async (t) => {
  const world = await createWorld(t);
  const [node, other] = [await world.node("old"), await world.node("new")];
  const job = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await world.admin.call("nodeRetire", { params: { nodeId: node.nodeId } });
  await assert.rejects(node.heartbeat(), { code: "unauthenticated" });
  assert.equal((await other.claim(1))[0]?.jobId, job.id);
  await world.assertLedgers();
});

test("a released job goes back at once without using its attempt", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const job = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(job.id, lease.epoch);
  assert.equal(await node.end(job.id, lease.epoch, { exitCode: 143, stopped: "release" }), "done");
  const [again] = await node.claim(1);
  assert.equal(again?.attempt, 1);
  await world.assertLedgers();
});

test("one row that cannot be swept does not keep the others", async (t) => {
  const world = await createWorld(t, { leaseMs: 150 });
  const node = await world.node("a");
  const jobs = [];
  for (let job = 0; job < 12; job++) jobs.push(await world.admin.call("jobSubmit", { body: { command } }));
  for (const lease of await node.claim(12)) await node.start(lease.jobId, lease.epoch);
  const poison = jobs[5]?.id;
  assert.ok(poison !== undefined);
  await world.sql(
    "insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch) select organisation_id, job_id, 4, 'poison', 'test', 0 from app.job_event where job_id = $1 and seq = 1",
    [poison],
  );
  await until("eleven jobs are back", async () => {
    const { items } = await world.admin.call("jobList", {});
    return items.filter((job) => job.state === "queued" || job.state === "scheduled").length === 11;
  });
  assert.equal((await world.admin.call("jobShow", { params: { jobId: poison } })).state, "running");
});

test("a gap in all sweeps earns the leases one more lease instead of returning everybody's work", async (t) => {
  const world = await createWorld(t, { leaseMs: 400 });
  const node = await world.node("a");
  const job = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(job.id, lease.epoch);
  await world.stopController();
  // As if the controller had been away for an hour: the last sweep and the lease lie that far back.
  await world.sql("update app.sweep set at = now() - interval '1 hour'");
  await world.sql("update app.job set lease_until = now() - interval '30 minutes' where lease_until is not null");
  await world.startController();
  assert.equal((await node.renew(job.id, lease.epoch)).verdict, "done");
  assert.equal((await world.admin.call("jobShow", { params: { jobId: job.id } })).attempt, 1);
});
