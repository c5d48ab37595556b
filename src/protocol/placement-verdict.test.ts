// SPDX-License-Identifier: Apache-2.0
// What placement says of nodes: three answers that are never mixed, nearest miss in numbers, verified now or not at all.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { MachineFacts } from "./placement-pools.ts";
import { answerFor, blockedReason, type Candidate, judge, servedOf } from "./placement-verdict.ts";
import type { SceneReport } from "./scene-schema.ts";

const GIB = 2 ** 30;
const machine = (gib: number, change: Partial<MachineFacts> = {}): MachineFacts => ({
  arch: "x64",
  memoryTotalBytes: gib * GIB,
  memoryAvailableBytes: null,
  floorBytes: null,
  devices: [],
  ...change,
});
const node = (change: Partial<Candidate>): Candidate => ({
  nodeId: "node_a",
  name: "anna",
  status: "active",
  isOnline: true,
  lastHeartbeatAt: "2026-01-01T00:00:00.000Z",
  facts: machine(16),
  served: servedOf(null),
  refuses: null,
  ...change,
});
const reasonOf = (...given: Parameters<typeof judge>): string => {
  const verdict = judge(...given);
  return "reason" in verdict ? verdict.reason : verdict.kind;
};

test("a machine that is too small is unfit, with the shortage in numbers", () => {
  assert.deepEqual(judge({ memoryBytes: 64 * GIB }, node({})), {
    kind: "too-small",
    reason: "too small: needs 64.0 GiB of memory, anna has 15.5 GiB at most, short by 48.5 GiB",
    shortBytes: 48.5 * GIB,
  });
  assert.equal(judge({ memoryBytes: 15.5 * GIB }, node({})).kind, "fits-host");
});

test("a node that has not told what it has is unknown, not empty", () => {
  assert.deepEqual(judge({}, node({ facts: null })), {
    kind: "facts-unknown",
    reason: "anna has not told yet what it has",
    shortBytes: 0,
  });
});

test("nothing is blocked while an active node that is online fits", () => {
  const nodes = [node({ isOnline: false }), node({ nodeId: "node_b", name: "berta" })];
  assert.equal(blockedReason({ memoryBytes: GIB }, nodes), undefined);
});

test("the answers are never mixed: nobody enrolled, only away ones fit, only refusing ones fit, none fits", () => {
  assert.match(blockedReason({}, []) ?? "", /no node is enrolled/);
  assert.match(blockedReason({}, [node({ status: "retired" })]) ?? "", /no node is enrolled/);
  assert.deepEqual(answerFor({}, [node({ isOnline: false }), node({ name: "berta", status: "draining" })]), {
    kind: "away",
    reason: "only offline or draining nodes fit: anna (last seen 2026-01-01T00:00:00.000Z), berta (draining)",
  });
  assert.deepEqual(answerFor({}, [node({ refuses: "a disk is damaged" }), node({ name: "berta", isOnline: false })]), {
    kind: "refused",
    reason:
      "only nodes that refuse jobs, or are away, fit: anna (refuses every job: a disk is damaged), berta (last seen 2026-01-01T00:00:00.000Z)",
  });
  assert.match(blockedReason({ arch: "arm64" }, [node({})]) ?? "", /no node fits: needs arm64, anna is x64/);
  assert.match(blockedReason({ nodeId: "node_gone" }, [node({})]) ?? "", /node node_gone is not in service/);
});

test("the nearest miss is told: the least shortage, whatever the order of the nodes", () => {
  const nodes = [node({ name: "small", facts: machine(8) }), node({}), node({ name: "big", facts: machine(32) })];
  for (const order of [nodes, nodes.toReversed()]) {
    assert.equal(
      blockedReason({ memoryBytes: 64 * GIB }, order),
      "no node fits: too small: needs 64.0 GiB of memory, big has 31.5 GiB at most, short by 32.5 GiB",
    );
  }
});

test("too small on an offline machine is no reason to wait for it", () => {
  const answer = answerFor({ memoryBytes: 64 * GIB }, [node({ isOnline: false })]);
  assert.equal(answer.kind, "no-node");
});

const healthy = (name: string): SceneReport["models"][number] => ({
  name,
  condition: "healthy",
  why: "",
  marker: "{}",
  pid: 1,
  startTicks: "1",
  port: 1,
  anonymousBytes: null,
  swappedBytes: null,
});
const report: SceneReport = {
  active: "day",
  desired: "day",
  transition: null,
  lastError: null,
  busy: null,
  doubt: null,
  scenes: [
    { name: "day", models: ["chat", "embed"] },
    { name: "night", models: ["big"] },
  ],
  models: [healthy("chat"), healthy("embed")],
  gateways: [],
  progress: [],
  availableBytes: null,
  floorBytes: null,
  wish: null,
};

test("a scene counts while it is active with every model verified, and a model while it is verified", () => {
  const at = (change: Partial<SceneReport>) => node({ served: servedOf({ ...report, ...change }) });
  assert.equal(judge({ scene: "day" }, at({})).kind, "fits-host");
  assert.equal(judge({ servedModel: "chat" }, at({})).kind, "fits-host");
  assert.equal(reasonOf({ scene: "night" }, at({})), "scene night is not active on anna: day is");
  assert.equal(reasonOf({ scene: "day" }, node({})), "scene day is not active on anna: none is");
  assert.equal(reasonOf({ servedModel: "big" }, at({})), "no model big is served and verified on anna now");
  const sick = { models: [healthy("chat"), { ...healthy("embed"), condition: "unhealthy" as const }] };
  assert.equal(
    reasonOf({ scene: "day" }, at(sick)),
    "scene day is active on anna, and not all of its models are verified now",
  );
  assert.equal(judge({ servedModel: "chat" }, at(sick)).kind, "fits-host");
  assert.equal(judge({ servedModel: "embed" }, at(sick)).kind, "model-not-served");
  assert.equal(
    judge({ scene: "day" }, at({ models: [healthy("chat")] })).kind,
    "scene-not-served",
    "one is not reported",
  );
  assert.equal(judge({ scene: "day" }, at({ transition: "to night" })).kind, "scene-not-served");
  assert.equal(judge({ scene: "day" }, at({ doubt: "cannot read the state" })).kind, "scene-not-served");
  assert.equal(judge({ servedModel: "chat" }, at({ doubt: "cannot read the state" })).kind, "model-not-served");
});
