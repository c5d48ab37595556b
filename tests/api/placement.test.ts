// SPDX-License-Identifier: Apache-2.0
// Placement over the real routes and a real database: pools, strangers, turns, ageing, reservations, the faster node, what is
// served, and the answer to why.

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { JobSubmission } from "../../src/protocol/job-schema.ts";
import type { Device } from "../../src/protocol/node-schema.ts";
import type { SceneReport } from "../../src/protocol/scene-schema.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";

const GIB = 2 ** 30;
const command = ["true"];
const memory = (total: number, available = total) => ({
  memoryTotalBytes: total * GIB,
  memoryAvailableBytes: available * GIB,
});
const card = (address: string, gib: number, availableGib = gib): Device => ({
  kind: "gpu",
  vendor: "nvidia",
  name: "RTX 4090",
  address,
  memoryBytes: gib * GIB,
  memoryAvailableBytes: availableGib * GIB,
  memoryCapBytes: null,
  unified: false,
  driver: null,
  state: "ok",
  reason: null,
});
/** Nodes stay online by their hello, however slow this machine is. */
const createPatientWorld = (t: TestContext): Promise<World> => createWorld(t, { heartbeatMs: 600_000 });
const submit = async (world: World, requires: JobSubmission["requires"] = {}, more: Partial<JobSubmission> = {}) =>
  (await world.admin.call("jobSubmit", { body: { command, requires, ...more } })).id;
const whyOf = (world: World, jobId: string) => world.admin.call("jobWhy", { params: { jobId } });
const ids = (jobs: readonly { readonly jobId: string }[]): readonly string[] => jobs.map((job) => job.jobId);

test("P6: a node is lent no more than its pools: live leases count, and what strangers use counts for starting now", async (t) => {
  const world = await createPatientWorld(t);
  const node = await world.node("anna", memory(32.5));
  const [one, two, three] = [
    await submit(world, { memoryBytes: 14 * GIB }),
    await submit(world, { memoryBytes: 14 * GIB }),
    await submit(world, { memoryBytes: 14 * GIB }),
  ];
  const first = await node.claim(8);
  assert.deepEqual(ids(first), [one, two]);
  assert.deepEqual(ids(await node.claim(8)), []);
  const why = await whyOf(world, three);
  assert.deepEqual([why.answer, why.position, why.nodes[0]?.startsNow], ["waiting", 0, false]);
  assert.match(why.text, /^waiting: fits, busy: anna is held by job_\w+ and 1 more; 0 jobs are before it$/);
  assert.deepEqual(
    why.holders.map((holder) => holder.bytes / GIB),
    [14, 14],
  );
  const [lease] = first;
  assert.ok(lease !== undefined);
  await node.end(lease.jobId, lease.epoch);
  assert.deepEqual(ids(await node.claim(8)), [three]);
  // A stranger: it fits by totals, is not blocked, and starts when the memory is free.
  const busy = await world.node("berta", memory(64.5, 10));
  const big = await submit(world, { memoryBytes: 40 * GIB });
  assert.deepEqual(ids(await busy.claim(1)), []);
  const held = await whyOf(world, big);
  assert.equal(held.answer, "waiting");
  assert.match(held.nodes.find((seen) => seen.name === "berta")?.text ?? "", /others use 54.5 GiB of its memory$/);
  await busy.heartbeat(memory(64.5));
  assert.deepEqual(ids(await busy.claim(1)), [big]);
});

test("P6: a job takes the card that has room, and what its lease took is recorded and told to the node", async (t) => {
  const world = await createPatientWorld(t);
  const devices = [card("0000:01:00.0", 24, 2), card("0000:02:00.0", 24)];
  const node = await world.node("anna", { ...memory(64), devices });
  const requires = { needFullBytes: 20 * GIB, paths: ["gpu" as const] };
  const never = await submit(world, { ...requires, needFullBytes: 40 * GIB });
  const [one, two] = [await submit(world, requires), await submit(world, requires)];
  const placements = () =>
    world.sql<{ placement: unknown }>("select placement from app.attempt order by claimed_at", []);
  const claimed = await node.claim(2);
  assert.deepEqual(
    claimed.map(({ jobId, placement }) => [jobId, placement]),
    [[one, { path: "gpu", gpus: ["0000:02:00.0"] }]],
  );
  const draws = [{ pool: "0000:02:00.0", gpu: "0000:02:00.0", bytes: 20 * GIB }];
  assert.deepEqual((await placements())[0]?.placement, { path: "gpu", rank: 0, draws });
  const [unfit] = await world.sql<{ skipped: number }>("select skipped from app.job where id = $1", [never]);
  assert.equal(unfit?.skipped, 0, "what can never fit here is not passed over here");
  const factsAt = () => world.sql("select at from app.node_facts where node_id = $1", [node.nodeId]);
  const before = await factsAt();
  await node.heartbeat({ devices: [card("0000:01:00.0", 24), card("0000:02:00.0", 24)] });
  assert.deepEqual(await factsAt(), before, "facts are not written for what is free");
  assert.deepEqual(ids(await node.claim(2)), [two]);
  const facts = (await world.admin.call("nodeShow", { params: { nodeId: node.nodeId } })).facts;
  assert.deepEqual(
    facts?.devices.map((device) => device.memoryAvailableBytes),
    [24 * GIB, 24 * GIB],
  );
});

test("of two projects with a thousand jobs and one, the one is next, also for a node that takes one job at a time", async (t) => {
  const world = await createPatientWorld(t);
  const node = await world.node("anna");
  for (const name of ["many", "single"]) await world.admin.call("projectAdd", { body: { name } });
  const many = await submit(world, {}, { project: "many" });
  await world.sql(
    `with made as (
       insert into app.job (organisation_id, id, lane_id, state, max_attempts, retry_on_failure, project_id, turn)
       select organisation_id, 'job_00' || lpad(n::text, 24, '0'), lane_id, 'queued', 1, false, project_id, turn
         from app.job, generate_series(1, 999) n where id = $1 returning organisation_id, id)
     insert into app.job_body (organisation_id, job_id, command, environment, labels)
     select organisation_id, id, '["true"]', '{}', '{}' from made`,
    [many],
  );
  const [first] = await node.claim(1);
  assert.ok(first !== undefined);
  const single = await submit(world, {}, { project: "single" });
  assert.deepEqual(ids(await node.claim(1)), [single]);
  assert.equal((await node.claim(1)).length, 1);
});

test("a job that waits rises one step of priority in a minute", async (t) => {
  const world = await createPatientWorld(t);
  const node = await world.node("anna");
  const old = await submit(world, {}, { priority: 0 });
  await world.sql("update app.job set turn = turn - interval '125 seconds' where id = $1", [old]);
  const [higher, highest] = [await submit(world, {}, { priority: 2 }), await submit(world, {}, { priority: 3 })];
  const order = [await node.claim(1), await node.claim(1), await node.claim(1)].flatMap(ids);
  assert.deepEqual(order, [highest, old, higher]);
});

test("a big job that is passed over too often has room kept for it on one node, until it runs or the node goes", async (t) => {
  const world = await createPatientWorld(t);
  const node = await world.node("anna", memory(16.5));
  await world.node("small", memory(4.5));
  const small = { memoryBytes: 4 * GIB };
  const holding = [await submit(world, small), await submit(world, small)];
  const leases = new Map((await node.claim(2)).map((lease) => [lease.jobId, lease]));
  assert.deepEqual([...leases.keys()], holding);
  const big = await submit(world, { memoryBytes: 14 * GIB });
  const reservedOn = async (): Promise<string | undefined> => (await whyOf(world, big)).reservedOn?.name;
  const endOldest = async (): Promise<void> => {
    const [lease] = leases.values();
    assert.ok(lease !== undefined);
    leases.delete(lease.jobId);
    await node.end(lease.jobId, lease.epoch);
  };
  for (let pass = 0; pass < 8; pass++) {
    assert.equal(await reservedOn(), undefined, `after ${pass}`);
    const next = await submit(world, small);
    const [lease] = await node.claim(1);
    assert.equal(lease?.jobId, next);
    if (lease !== undefined) leases.set(lease.jobId, lease);
    await endOldest();
  }
  assert.equal(await reservedOn(), "anna");
  const passed = await submit(world, small);
  assert.deepEqual(ids(await node.claim(1)), [], "nobody else while it waits");
  const kept = (await whyOf(world, passed)).nodes.find((seen) => seen.name === "anna");
  assert.match(kept?.text ?? "", /^keeps room for job_\w+, which was passed over too often$/);
  // The node goes: the room is free for whoever asks.
  await world.admin.call("nodeDrain", { params: { nodeId: node.nodeId } });
  await until("expired", async () => (await reservedOn()) === undefined);
  await world.admin.call("nodeActivate", { params: { nodeId: node.nodeId } });
  const [again] = await node.claim(1);
  assert.equal(again?.jobId, passed);
  assert.equal(await reservedOn(), "anna", "it was passed over once more");
  if (again !== undefined) leases.set(again.jobId, again);
  while (leases.size > 0) await endOldest();
  assert.deepEqual(ids(await node.claim(1)), [big]);
  assert.deepEqual(
    await world.sql("select 1 from app.reservation r join app.job j on j.id = r.job_id where j.state = 'queued'"),
    [],
  );
  await world.assertLedgers();
});

test("a slower node leaves a job to an idle faster one for a moment, on the database's clock, and then takes it", async (t) => {
  const world = await createPatientWorld(t);
  const slow = await world.node("slow", memory(64));
  const fast = await world.node("fast", { ...memory(64), devices: [card("0000:01:00.0", 24)] });
  const requires = { needFullBytes: 20 * GIB };
  const queuedAgo = (id: string, ms: number) =>
    world.sql("update app.job set queued_at = now() - $2 * interval '1 millisecond' where id = $1", [id, ms]);
  const alone = await submit(world, requires);
  assert.deepEqual(ids(await slow.claim(1)), [alone], "the faster one has not asked for work");
  await world.sql("update app.node_heartbeat set polled_at = now() + interval '1 hour' where node_id = $1", [
    fast.nodeId,
  ]);
  const left = await submit(world, requires);
  await queuedAgo(left, -3_600_000);
  assert.deepEqual(await slow.claim(1), [], "the faster one is idle");
  await queuedAgo(left, 400);
  assert.deepEqual(ids(await slow.claim(1)), [left], "a path lies between them: a quarter of a second");
});

test("a job for a scene runs only where the scene is active with its models verified, and is freed by the report", async (t) => {
  const world = await createPatientWorld(t);
  const node = await world.node("anna");
  const model = (condition: "healthy" | "unhealthy"): SceneReport["models"][number] => ({
    name: "chat",
    condition,
    why: "",
    marker: "{}",
    pid: 1,
    startTicks: "1",
    port: 1,
    anonymousBytes: null,
    swappedBytes: null,
  });
  const report = (active: string | null, models: SceneReport["models"]): SceneReport => ({
    active,
    desired: active,
    transition: null,
    lastError: null,
    busy: null,
    doubt: null,
    scenes: [{ name: "day", models: ["chat"] }],
    models,
    gateways: [],
    progress: [],
    availableBytes: null,
    floorBytes: null,
    wish: null,
  });
  const job = await submit(world, { scene: "day" });
  const other = await submit(world, { servedModel: "chat" });
  const isBlocked = (id: string, reason: string) =>
    until(reason, async () => (await world.admin.call("jobShow", { params: { jobId: id } })).blocked === reason);
  await isBlocked(job, "no node fits: scene day is not active on anna: none is");
  await isBlocked(other, "no node fits: no model chat is served and verified on anna now");
  await node.heartbeat({}, report("day", [model("unhealthy")]));
  await isBlocked(job, "no node fits: scene day is active on anna, and not all of its models are verified now");
  assert.deepEqual(await node.claim(2), []);
  await node.heartbeat({}, report("day", [model("healthy")]));
  assert.deepEqual(ids(await node.claim(2)), [job, other]);
});

test("P6: why tells each node's verdict, the answer and what is before it, for every state of a job", async (t) => {
  const world = await createPatientWorld(t);
  const bare = await submit(world);
  assert.deepEqual(await whyOf(world, bare).then(({ answer, text }) => [answer, text]), [
    "no-node",
    "blocked: no node is enrolled: pair one with `holdfast node pair NAME`",
  ]);
  const node = await world.node("anna", {
    ...memory(64.5),
    devices: [{ ...card("0000:01:00.0", 24), state: "unreadable", reason: "no right to open it" }],
  });
  const job = await submit(world, { needFullBytes: 20 * GIB });
  const huge = await submit(world, { needFullBytes: 2 ** 43 });
  const why = await whyOf(world, job);
  assert.deepEqual(
    [why.answer, why.position, why.text],
    ["waiting", 1, "waiting: fits, and anna can take it with its next free slot; 1 job is before it"],
  );
  const [seen] = why.nodes;
  assert.deepEqual(
    [seen?.verdict, seen?.path, seen?.startsNow, seen?.text],
    ["fits-host", "cpu", true, "gpu: RTX 4090 at 0000:01:00.0: unreadable, no right to open it"],
  );
  const blocked = await whyOf(world, huge);
  assert.equal(blocked.answer, "no-node");
  assert.match(
    blocked.text,
    /^blocked: no node fits: too small: needs 8192.0 GiB of memory, anna has 64.0 GiB at most/,
  );
  assert.match(blocked.text, /; RTX 4090 at 0000:01:00.0: unreadable, no right to open it$/);
  await world.admin.call("nodeDrain", { params: { nodeId: node.nodeId } });
  const away = await whyOf(world, job);
  assert.deepEqual([away.answer, away.text], ["away", "blocked: only offline or draining nodes fit: anna (draining)"]);
  await world.admin.call("nodeActivate", { params: { nodeId: node.nodeId } });
  await node.claim(1);
  assert.deepEqual(await whyOf(world, bare).then(({ answer, text }) => [answer, text]), ["held", "leased on anna"]);
  await world.admin.call("jobCancel", { params: { jobId: job } });
  assert.deepEqual(await whyOf(world, job).then(({ answer, text, position }) => [answer, text, position]), [
    "ended",
    "ended: cancelled",
    null,
  ]);
  const later = await submit(world, {}, { notBefore: "2099-01-01T00:00:00.000Z" });
  assert.match((await whyOf(world, later)).text, /^waits for its time: 2099-01-01/);
});

test("needs that contradict themselves or their model are refused with every place at once", async (t) => {
  const world = await createPatientWorld(t);
  await world.admin.call("modelAdd", { body: { name: "big", needs: { needFullBytes: 40 * GIB, paths: ["gpu"] } } });
  const placesOf = async (requires: JobSubmission["requires"]): Promise<readonly string[]> => {
    const error: unknown = await submit(world, requires).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof Error && "details" in error && Array.isArray(error.details));
    return error.details.map((fault: { readonly place: string }) => fault.place);
  };
  assert.deepEqual(await placesOf({ needMinBytes: 1, gpus: 2 }), ["/requires/needMinBytes", "/requires/gpus"]);
  assert.deepEqual(await placesOf({ model: "big", paths: ["cpu"] }), ["/requires/paths"]);
  await assert.rejects(world.admin.call("modelAdd", { body: { name: "m", needs: { needHostBytes: 1 } } }), {
    message: /\/needs\/needHostBytes/,
  });
  const id = await submit(world, { model: "big" });
  const { requires } = await world.admin.call("jobShow", { params: { jobId: id } });
  assert.deepEqual(requires, { model: "big", needFullBytes: 40 * GIB, paths: ["gpu"] });
});
