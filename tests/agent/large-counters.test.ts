// SPDX-License-Identifier: Apache-2.0
// Counters above 2^31 and 2^53, from the claim to a release and from an adoption to the end: nothing is rounded, nothing
// overflows.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";
import { isRunning, jobState, outputOf, pidOf, startNode, waitingCommand } from "./kit.ts";

const EPOCHS = ["3000000000", "9007199254740993"];
const LARGE = "9007199254740993";
/** What a stopping agent may take to give its jobs back. */
const RELEASED_WITHIN_MS = 2_000;

test("SIGTERM releases running jobs within 2 s and uses no attempt, with epochs and claim numbers above 2^31 and 2^53", async (t) => {
  const world = await createWorld(t, { leaseMs: 20_000 });
  const waiting = { body: { command: waitingCommand("/never") } };
  const ids: string[] = [];
  for (const epoch of EPOCHS) {
    const { id } = await world.admin.call("jobSubmit", waiting);
    await world.sql("update app.job set epoch = $2::bigint - 1 where id = $1", [id, epoch]);
    ids.push(id);
  }
  const { machine, agent } = await startNode(t, world, "one", { slots: 2 });
  const pids = await Promise.all(ids.map((id) => pidOf(world, id)));
  await world.sql("update app.job set claim_number = $1", [LARGE]);
  const [now] = await world.sql<{ at: Date }>("select clock_timestamp() as at");
  agent.process.kill("SIGTERM");
  assert.equal(await agent.ended, 0, agent.stderr());
  assert.ok(!pids.some(isRunning));
  assert.deepEqual(machine.launches(), []);
  for (const [index, id] of ids.entries()) {
    const job = await world.admin.call("jobShow", { params: { jobId: id } });
    const { events } = await world.admin.call("jobEvents", { params: { jobId: id } });
    assert.deepEqual([job.state, job.attempt], ["queued", 0]);
    assert.equal(BigInt(job.epoch), BigInt(EPOCHS[index] ?? "") + 1n);
    assert.equal(events.map((event) => `${event.kind}@${event.epoch}`).at(-1), `released@${EPOCHS[index]}`);
    const tookMs = Date.parse(events.at(-1)?.at ?? "") - (now?.at.getTime() ?? 0);
    assert.ok(tookMs <= RELEASED_WITHIN_MS, `released after ${tookMs} ms`);
  }
});

test("a job with an epoch and log numbers above 2^53 is adopted, its output is whole and resumable, and it ends", async (t) => {
  const world = await createWorld(t, { leaseMs: 20_000 });
  const { machine, agent } = await startNode(t, world, "one");
  const go = path.join(machine.root, "go");
  // Queued for nobody until its epoch is set.
  const { id } = await world.admin.call("jobSubmit", {
    body: { command: waitingCommand(go), notBefore: new Date(Date.now() + 3_600_000).toISOString() },
  });
  await world.sql("update app.job set epoch = $2::bigint - 1, run_at = now() where id = $1", [id, LARGE]);
  const pid = await pidOf(world, id);
  await world.sql("update app.attempt set log_number = $2 where job_id = $1", [id, LARGE]);
  agent.process.kill("SIGKILL");
  await agent.ended;
  const second = machine.start();
  await until("the job is adopted", () => second.stderr().includes('"found":"alive","verdict":"done"'));
  fs.writeFileSync(go, "");
  await jobState(world, id, "succeeded");
  assert.equal(await outputOf(world, id), `pid ${pid}\nover\n`);
  const { chunks } = await world.admin.call("jobLogs", { params: { jobId: id } });
  assert.deepEqual(
    chunks.map((chunk) => chunk.cursor),
    [`${LARGE}.1`, `${LARGE}.${BigInt(LARGE) + 1n}`],
  );
  const rest = await world.admin.call("jobLogs", {
    params: { jobId: id },
    query: { after: chunks[0]?.cursor ?? "" },
  });
  assert.equal(rest.chunks.map((chunk) => chunk.text).join(""), "over\n");
  await world.assertLedgers();
});

test("claim numbers above 2^31 and up to 2^53 are taken in order, repeated and overtaken like small ones", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  for (let job = 0; job < 3; job++) await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  for (const number of [3_000_000_000, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER]) {
    const [lease] = await node.claim(1, { number });
    assert.ok(lease !== undefined);
    assert.equal((await node.claim(1, { number }))[0]?.epoch, lease.epoch);
    assert.equal(await node.start(lease.jobId, lease.epoch), "done");
  }
  assert.deepEqual(await node.claim(1, { number: Number.MAX_SAFE_INTEGER - 1 }), []);
});
