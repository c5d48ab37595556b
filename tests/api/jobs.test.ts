// SPDX-License-Identifier: Apache-2.0
// Jobs as people see them: idempotency, logs, results, blocked lanes, the ledger.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogChunk } from "../../src/protocol/job-schema.ts";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";

const command = ["true"];

test("64 racing posts with one key make one job; another body under the key is a conflict", async (t) => {
  const world = await createWorld(t);
  const send = () =>
    fetch(`${world.url}/v1/jobs`, {
      method: "POST",
      headers: { authorization: `Bearer ${world.token}`, "content-type": "application/json", "idempotency-key": "k1" },
      body: JSON.stringify({ command, labels: { b: "2", a: "1" } }),
    });
  const answers = await Promise.all(Array.from({ length: 64 }, send));
  const statuses = answers.map((answer) => answer.status);
  assert.equal(statuses.filter((status) => status === 201).length, 1);
  assert.equal(statuses.filter((status) => status === 200).length, 63);
  const bodies = await Promise.all(answers.map(async (answer) => (await answer.json()) as { id: string }));
  assert.equal(new Set(bodies.map((body) => body.id)).size, 1);
  // The same request with its keys in another order is the same request.
  const same = await world.admin.call("jobSubmit", {
    body: { labels: { a: "1", b: "2" }, command },
    idempotencyKey: "k1",
  });
  assert.equal(same.id, bodies[0]?.id);
  await assert.rejects(world.admin.call("jobSubmit", { body: { command: ["false"] }, idempotencyKey: "k1" }), {
    code: "idempotency_conflict",
  });
});

test("log chunks are taken in order, repeats and gaps are told apart, and a tail resumes behind its cursor", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const job = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(job.id, lease.epoch);
  const params = { jobId: job.id };
  const live = world.admin.stream("jobLogTail", { params });
  assert.deepEqual((await live.next()).value?.chunks, []);
  assert.equal((await node.log(job.id, lease.epoch, { offset: 0, text: "héllo\n" })).verdict, "done");
  const seen: LogChunk[] = [...((await live.next()).value?.chunks ?? [])];
  assert.deepEqual(
    seen.map((chunk) => chunk.text),
    ["héllo\n"],
  );
  assert.deepEqual(await node.log(job.id, lease.epoch, { offset: 0, text: "héllo\n" }), {
    jobId: job.id,
    epoch: lease.epoch,
    verdict: "already_done",
    expectedOffset: 7,
  });
  assert.deepEqual(await node.log(job.id, lease.epoch, { offset: 9, text: "x" }), {
    jobId: job.id,
    epoch: lease.epoch,
    verdict: "gap",
    expectedOffset: 7,
  });
  assert.equal(
    (await node.log(job.id, lease.epoch, { offset: 0, text: "warning: a\0b\n", stream: "stderr" })).verdict,
    "done",
  );
  assert.equal(await node.end(job.id, lease.epoch), "done");
  for await (const page of live) seen.push(...page.chunks);
  assert.deepEqual(
    seen.map((chunk) => [chunk.stream, chunk.text]),
    [
      ["stdout", "héllo\n"],
      ["stderr", "warning: a\0b\n"],
    ],
  );
  const rest = await world.admin.call("jobLogs", { params, query: { after: seen[0]?.cursor ?? "" } });
  assert.deepEqual([rest.chunks.length, rest.ended, rest.cut], [1, true, false]);
});

test("a result with what PostgreSQL cannot store is refused by its place; the job still ends without it", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const job = await world.admin.call("jobSubmit", { body: { command } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(job.id, lease.epoch);
  await assert.rejects(
    node.end(job.id, lease.epoch, { result: { text: "a\0b" } }),
    (error: { code: string; details: { place: string }[] }) => {
      assert.deepEqual([error.code, error.details[0]?.place], ["invalid_request", "/ending/result/text"]);
      return true;
    },
  );
  assert.equal(await node.end(job.id, lease.epoch, { exitCode: 7, message: "said what it could" }), "done");
  const ended = await world.admin.call("jobShow", { params: { jobId: job.id } });
  assert.deepEqual(
    [ended.state, ended.exitCode, ended.reason, ended.message],
    ["failed", 7, "exit-code", "said what it could"],
  );
});

test("P6: a job that nothing can run is blocked with the reason, and frees itself when a node fits", async (t) => {
  const world = await createWorld(t);
  const small = await world.node("small");
  const job = await world.admin.call("jobSubmit", { body: { command, requires: { memoryBytes: 64 * 2 ** 30 } } });
  const params = { jobId: job.id };
  await until(
    "blocked",
    async () =>
      (await world.admin.call("jobShow", { params })).blocked ===
      "no node fits: too small: needs 64.0 GiB of memory, small has 15.5 GiB at most, short by 48.5 GiB",
  );
  assert.deepEqual(await small.claim(1), []);
  const { attention } = await world.admin.call("overview", {});
  assert.ok(
    attention.some(({ text }) => text.startsWith("1 job is blocked: no node fits")),
    JSON.stringify(attention),
  );
  const big = await world.node("big", { memoryTotalBytes: 128 * 2 ** 30, memoryAvailableBytes: 120 * 2 ** 30 });
  await until("free again", async () => (await world.admin.call("jobShow", { params })).blocked === null);
  assert.equal((await big.claim(1))[0]?.jobId, job.id);
});

test("a scheduled job waits for its time, and a failing one is tried again when it asks for it", async (t) => {
  const world = await createWorld(t, { retryBaseMs: 10 });
  const node = await world.node("a");
  const later = await world.admin.call("jobSubmit", {
    body: { command, notBefore: new Date(Date.now() + 400).toISOString() },
  });
  assert.equal(later.state, "scheduled");
  assert.deepEqual(await node.claim(1), []);
  const lease = await until("its time has come", async () => (await node.claim(1, { waitMs: 1000 }))[0]);
  assert.equal(lease.jobId, later.id);
  const flaky = await world.admin.call("jobSubmit", { body: { command, retry: { maxAttempts: 2, onFailure: true } } });
  for (const attempt of [1, 2]) {
    const next = await until(`attempt ${attempt}`, async () => (await node.claim(1, { waitMs: 500 }))[0]);
    assert.deepEqual([next.jobId, next.attempt], [flaky.id, attempt]);
    await node.start(flaky.id, next.epoch);
    await node.end(flaky.id, next.epoch, { exitCode: 1 });
  }
  assert.equal((await world.admin.call("jobShow", { params: { jobId: flaky.id } })).state, "dead");
  await world.assertLedgers();
});

test("higher priority runs first, and among equals the older", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const submit = (priority: number, memoryBytes?: number) =>
    world.admin.call("jobSubmit", {
      body: { command, priority, ...(memoryBytes === undefined ? {} : { requires: { memoryBytes } }) },
    });
  const [low, high, second, otherLane] = [await submit(-5), await submit(9), await submit(0), await submit(5, 1)];
  const order = (await node.claim(4)).map((job) => job.jobId);
  assert.deepEqual(order, [high.id, otherLane.id, second.id, low.id]);
});

test("a list does not read inputs: 200 jobs with large ones stay small", async (t) => {
  const world = await createWorld(t);
  const input = { text: "x".repeat(200_000) };
  for (let job = 0; job < 20; job++) await world.admin.call("jobSubmit", { body: { command, input } });
  const answer = await fetch(`${world.url}/v1/jobs?limit=200`, { headers: { authorization: `Bearer ${world.token}` } });
  assert.ok((await answer.text()).length < 20 * 1000);
});
