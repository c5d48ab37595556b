// SPDX-License-Identifier: Apache-2.0
// Pairing: single use by the database, a lost answer can be asked for again, a name belongs to one node.

import assert from "node:assert/strict";
import { test } from "node:test";
import { newNodeKey, pairWith } from "../kit/node-double.ts";
import { createWorld } from "../kit/world.ts";

test("the same key gets the same answer again, another key is refused, and racing keys pair one machine", async (t) => {
  const world = await createWorld(t);
  const { code } = await world.admin.call("pairingCreate", { body: { name: "anna" } });
  const key = newNodeKey();
  const first = await pairWith(world.url, code, key);
  assert.deepEqual(await pairWith(world.url, code, key), first);
  await assert.rejects(pairWith(world.url, code, newNodeKey()), { code: "pairing_code_used" });
  const { code: raced } = await world.admin.call("pairingCreate", { body: { name: "berta" } });
  const answers = await Promise.allSettled(Array.from({ length: 8 }, () => pairWith(world.url, raced, newNodeKey())));
  assert.equal(answers.filter((answer) => answer.status === "fulfilled").length, 1);
  assert.equal((await world.admin.call("nodeList", {})).items.length, 2);
});

test("P4: a paired node is not online before it heartbeats, and not after it stopped", async (t) => {
  const world = await createWorld(t, { heartbeatMs: 100 });
  const { code } = await world.admin.call("pairingCreate", { body: { name: "anna" } });
  const key = newNodeKey();
  const { nodeId } = await pairWith(world.url, code, key);
  const params = { nodeId };
  assert.equal((await world.admin.call("nodeShow", { params })).online, false);
  const { NodeDouble } = await import("../kit/node-double.ts");
  const node = new NodeDouble({ baseUrl: world.url, nodeId, credential: key.credential });
  await node.hello();
  assert.equal((await world.admin.call("nodeShow", { params })).online, true);
  await world.sql("update app.node_heartbeat set at = now() - interval '301 milliseconds'");
  assert.equal((await world.admin.call("nodeShow", { params })).online, false);
});

test("a name that a node has is refused when the code is made and when it is used, and is free after a retirement", async (t) => {
  const world = await createWorld(t);
  const early = await world.admin.call("pairingCreate", { body: { name: "anna" } });
  const node = await world.node("anna");
  await assert.rejects(world.admin.call("pairingCreate", { body: { name: "anna" } }), { code: "node_name_taken" });
  await assert.rejects(pairWith(world.url, early.code, newNodeKey()), { code: "node_name_taken" });
  await world.admin.call("nodeRetire", { params: { nodeId: node.nodeId } });
  const again = await world.node("anna");
  assert.notEqual(again.nodeId, node.nodeId);
});

test("an expired code, an invented one and a signature by another key are refused", async (t) => {
  const world = await createWorld(t);
  const { code } = await world.admin.call("pairingCreate", { body: { name: "anna" } });
  await world.sql("update app.pairing_code set expires_at = now() - interval '1 second'");
  await assert.rejects(pairWith(world.url, code, newNodeKey()), { code: "pairing_code_expired" });
  await assert.rejects(pairWith(world.url, `hfp_${"a".repeat(43)}`, newNodeKey()), { code: "pairing_code_unknown" });
  const { code: other } = await world.admin.call("pairingCreate", { body: { name: "berta" } });
  const [key, thief] = [newNodeKey(), newNodeKey()];
  await assert.rejects(pairWith(world.url, other, { ...key, signature: thief.signature }), { code: "invalid_request" });
});
