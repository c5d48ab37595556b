// SPDX-License-Identifier: Apache-2.0
// Slow never excludes, too small always does, unknown is not zero; the reason of a blocked job has numbers in it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { blockedReason, type Candidate, fit } from "./placement.ts";

const GIB = 2 ** 30;
const node = (change: Partial<Candidate>): Candidate => ({
  nodeId: "node_a",
  name: "anna",
  status: "active",
  isOnline: true,
  lastHeartbeatAt: "2026-01-01T00:00:00.000Z",
  arch: "x64",
  memoryTotalBytes: 16 * GIB,
  refuses: null,
  ...change,
});

test("a machine that is too small is unfit, with the shortage in numbers", () => {
  assert.deepEqual(fit({ memoryBytes: 64 * GIB }, node({})), {
    kind: "unfit",
    reason: "too small: needs 64.0 GiB, anna has 16.0 GiB, short by 48.0 GiB",
  });
  assert.equal(fit({ memoryBytes: 16 * GIB }, node({})).kind, "fits");
});

test("unknown memory is not zero and not enough either: it is said to be unknown", () => {
  assert.deepEqual(fit({ memoryBytes: 1 }, node({ memoryTotalBytes: null })), {
    kind: "unfit",
    reason: "the memory of anna is unknown",
  });
  assert.equal(fit({}, node({ memoryTotalBytes: null })).kind, "fits");
});

test("nothing is blocked while an active node that is online fits", () => {
  assert.equal(
    blockedReason({ memoryBytes: GIB }, [node({ isOnline: false }), node({ nodeId: "node_b", name: "berta" })]),
    undefined,
  );
});

test("the three reasons are never mixed: nobody enrolled, only away ones fit, none fits", () => {
  assert.match(blockedReason({}, []) ?? "", /no node is enrolled/);
  assert.match(blockedReason({}, [node({ status: "retired" })]) ?? "", /no node is enrolled/);
  assert.equal(
    blockedReason({}, [node({ isOnline: false }), node({ name: "berta", status: "draining" })]),
    "only offline or draining nodes fit: anna (last seen 2026-01-01T00:00:00.000Z), berta (draining)",
  );
  assert.match(
    blockedReason({ memoryBytes: 64 * GIB }, [node({}), node({ name: "big", memoryTotalBytes: 32 * GIB })]) ?? "",
    /no node fits: too small: needs 64.0 GiB, big has 32.0/,
  );
  assert.match(blockedReason({ arch: "arm64" }, [node({})]) ?? "", /no node fits: needs arm64, anna is x64/);
  assert.match(blockedReason({ nodeId: "node_gone" }, [node({})]) ?? "", /node node_gone is not in service/);
});
