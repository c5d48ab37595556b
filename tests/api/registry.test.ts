// SPDX-License-Identifier: Apache-2.0
// Registered models and projects, and what they do to a job; filters and search over jobs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld } from "../kit/world.ts";

const GIB = 2 ** 30;

test("a model's needs fill the profile of a job that asks for it, the larger memory counting", async (t) => {
  const world = await createWorld(t);
  await world.admin.call("modelAdd", { body: { name: "big", needs: { memoryBytes: 64 * GIB, arch: "x64" } } });
  const submit = (requires: object) =>
    world.admin.call("jobSubmit", { body: { command: ["true"], requires: { model: "big", ...requires } } });
  assert.deepEqual((await submit({})).requires, { model: "big", memoryBytes: 64 * GIB, arch: "x64" });
  assert.equal((await submit({ memoryBytes: 100 * GIB })).requires.memoryBytes, 100 * GIB);
  assert.equal((await submit({ memoryBytes: GIB })).requires.memoryBytes, 64 * GIB);
  await assert.rejects(submit({ arch: "arm64" }), { code: "invalid_request", message: /needs x64/ });
  const node = await world.node("small");
  assert.deepEqual(await node.claim(4), [], "a node with 16 GiB gets none of them");
});

test("an unknown model and an unknown project are named together, each with its place", async (t) => {
  const world = await createWorld(t);
  const submit = world.admin.call("jobSubmit", {
    body: { command: ["true"], requires: { model: "none" }, project: "nil" },
  });
  await assert.rejects(submit, (error: { code: string; details: { place: string }[] }) => {
    assert.equal(error.code, "invalid_request");
    assert.deepEqual(
      error.details.map(({ place }) => place),
      ["/requires/model", "/project"],
    );
    return true;
  });
});

test("a retired name takes no new job, is free again, and the jobs that used it keep theirs", async (t) => {
  const world = await createWorld(t);
  const first = await world.admin.call("projectAdd", { body: { name: "speech" } });
  const job = await world.admin.call("jobSubmit", { body: { command: ["true"], project: "speech" } });
  assert.equal(job.project, "speech");
  await assert.rejects(world.admin.call("projectAdd", { body: { name: "speech" } }), { code: "conflict" });
  const retired = await world.admin.call("projectRetire", { params: { projectId: first.id } });
  assert.equal(retired.openJobs, 1);
  await assert.rejects(world.admin.call("projectRetire", { params: { projectId: first.id } }), { code: "conflict" });
  await assert.rejects(world.admin.call("jobSubmit", { body: { command: ["true"], project: "speech" } }), {
    code: "invalid_request",
  });
  await world.admin.call("projectAdd", { body: { name: "speech" } });
  assert.equal((await world.admin.call("jobShow", { params: { jobId: job.id } })).project, "speech");
  const model = await world.admin.call("modelAdd", { body: { name: "m" } });
  await world.admin.call("modelRetire", { params: { modelId: model.id } });
  assert.notEqual((await world.admin.call("modelAdd", { body: { name: "m" } })).id, model.id);
});

test("whoever may only read registers and retires nothing", async (t) => {
  const world = await createWorld(t);
  const reader = await world.people("fleet:read");
  await assert.rejects(reader.call("modelAdd", { body: { name: "m" } }), { code: "forbidden" });
  await assert.rejects(reader.call("projectAdd", { body: { name: "p" } }), { code: "forbidden" });
});

test("jobs are found by state, node, project, and by words of their command, labels and id, page by page", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  await world.admin.call("projectAdd", { body: { name: "speech" } });
  const ids: string[] = [];
  for (let job = 0; job < 6; job++) {
    const body = { command: ["python3", job % 2 === 0 ? "Train.py" : "eval.py", `--seed=${job}`] };
    const more = job < 2 ? { project: "speech", labels: { team: "north_1%" } } : {};
    ids.push((await world.admin.call("jobSubmit", { body: { ...body, ...more } })).id);
  }
  const find = async (query: object) =>
    (await world.admin.call("jobList", { query })).items.map(({ id }) => ids.indexOf(id));
  assert.deepEqual(await find({ project: "speech" }), [1, 0]);
  assert.deepEqual(await find({ search: "train.PY" }), [4, 2, 0]);
  assert.deepEqual(await find({ search: "python3 eval" }), [5, 3, 1]);
  assert.deepEqual(await find({ search: "north_1%" }), [1, 0]);
  assert.deepEqual(await find({ search: "%" }), [1, 0], "a wildcard of SQL is a letter like any other");
  assert.deepEqual(await find({ search: ids[3] }), [3]);
  await node.claim(1);
  assert.deepEqual(await find({ nodeId: node.nodeId }), [0]);
  assert.deepEqual(await find({ state: "leased", search: "train" }), [0]);
  const first = await world.admin.call("jobList", { query: { search: "train", limit: 2 } });
  assert.deepEqual(await find({ search: "train", limit: 2, cursor: first.nextCursor }), [0]);
});
