// SPDX-License-Identifier: Apache-2.0
// A node's credential is replaced while it works: at no moment does none work, whatever is lost or killed on the way.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { createClient } from "../../src/client/client.ts";
import { whyRefused } from "../../src/enrol/enrol.ts";
import { credentialHash } from "../../src/enrol/node-key.ts";
import { loadOrDrawNext } from "../../src/enrol/next-credential.ts";
import { codeOf } from "../../src/std/errors.ts";
import { systemRandom } from "../../src/std/random.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";
import { jobState, startNode, waitingCommand } from "./kit.ts";

const fileOf = (root: string, name: string): string => path.join(root, "node", name);
const read = (root: string): string => fs.readFileSync(fileOf(root, "credential"), "utf8").trim();

/** Whether the controller still takes it: asked about no lease at all, it answers about the session. */
async function isGood(world: World, credential: string): Promise<boolean> {
  return codeOf(await whyRefused(world.url, credential)) !== "unauthenticated";
}

const rotated = (world: World, nodeId: string) =>
  until("the new credential was used and the rotation is over", async () => {
    const node = await world.admin.call("nodeShow", { params: { nodeId } });
    return node.rotation === null ? node : undefined;
  });

test("a credential is replaced under a running job: the agent goes on, the old one ends with the first use of the new one", async (t) => {
  const world = await createWorld(t);
  const { machine, agent, nodeId } = await startNode(t, world, "one");
  const before = read(machine.root);
  const gate = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand(gate) } });
  await jobState(world, id, "running");
  await world.admin.call("nodeRotate", { params: { nodeId } });
  await rotated(world, nodeId);
  const after = read(machine.root);
  assert.notEqual(after, before);
  assert.equal(fs.statSync(fileOf(machine.root, "credential")).mode & 0o777, 0o600);
  assert.equal(fs.existsSync(fileOf(machine.root, "credential.next")), false);
  assert.equal(await isGood(world, before), false);
  // The long poll that waited under the old credential is asked again with the new one: work still comes.
  const next = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await jobState(world, next.id, "succeeded");
  fs.writeFileSync(gate, "");
  assert.equal((await jobState(world, id, "succeeded")).attempt, 1);
  assert.equal(agent.process.exitCode, null, agent.stderr());
  const { items } = await world.admin.call("auditList", { query: { action: "node" } });
  assert.deepEqual(items.map((entry) => entry.action).slice(0, 3), [
    "node.rotated",
    "node.offer-credential",
    "node.rotate",
  ]);
});

for (const step of ["drawn", "offered", "kept"] as const) {
  test(`an agent that was killed when the new credential was ${step} finishes the replacement at its next start`, async (t) => {
    const world = await createWorld(t);
    const { machine, agent, nodeId } = await startNode(t, world, "one");
    const before = read(machine.root);
    agent.process.kill("SIGKILL");
    await agent.ended;
    await world.admin.call("nodeRotate", { params: { nodeId } });
    // What the agent does, up to the moment of its death.
    const next = loadOrDrawNext(path.join(machine.root, "node"), systemRandom);
    if (step !== "drawn") {
      const offer = { body: { credentialHash: credentialHash(next) } };
      const one = await createClient({ baseUrl: world.url, credential: before }).call("nodeCredential", offer);
      const again = await createClient({ baseUrl: world.url, credential: before }).call("nodeCredential", offer);
      assert.deepEqual(one, again, "the same offer again is the same credential");
    }
    if (step === "kept") fs.renameSync(fileOf(machine.root, "credential.next"), fileOf(machine.root, "credential"));
    assert.equal(await isGood(world, before), true, "the old one works until the new one is used");
    const second = machine.start();
    await rotated(world, nodeId);
    assert.equal(read(machine.root), next);
    assert.equal(await isGood(world, before), false);
    assert.equal(second.process.exitCode, null, second.stderr());
  });
}

test("a retired node rotates nothing, and a second offer ends the first", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const hashes = ["hfn_a", "hfn_b"].map((credential) => credentialHash(credential));
  for (const hash of hashes) await node.client.call("nodeCredential", { body: { credentialHash: hash } });
  const rows = await world.sql("select id from app.credential where kind = 'node' and revoked_at is null");
  assert.equal(rows.length, 2, "the present one and the last offer");
  await world.admin.call("nodeRetire", { params: { nodeId: node.nodeId } });
  await assert.rejects(world.admin.call("nodeRotate", { params: { nodeId: node.nodeId } }), {
    code: "conflict",
    message: /a retired node has no credential/,
  });
  assert.equal((await world.sql("select 1 from app.credential where kind = 'node' and revoked_at is null")).length, 0);
});

test("an agent that speaks for a session that is over is shown as a second agent on the credential", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const { sessionId } = node;
  await node.hello();
  const late = node.client.call("nodeHeartbeat", {
    body: { sessionId, facts: node.facts, now: new Date().toISOString() },
  });
  await assert.rejects(late, { code: "session_superseded" });
  const { attention } = await world.admin.call("overview", {});
  assert.deepEqual(
    attention.map(({ level, text }) => `${level}: ${text}`),
    ["error: two agents use the credential of node a"],
  );
});
