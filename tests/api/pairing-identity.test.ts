// SPDX-License-Identifier: Apache-2.0
// Which machine is which node: races for a name, machines set up anew, copies, deaths in the middle, and who used a code.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { createClient } from "../../src/client/client.ts";
import { loadAgentConfig } from "../../src/enrol/agent-config.ts";
import { finishPairing, pair } from "../../src/enrol/enrol.ts";
import { loadCredential } from "../../src/enrol/node-key.ts";
import { codeOf } from "../../src/std/errors.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { newNodeKey, NodeDouble, pairWith } from "../kit/node-double.ts";
import { createWorld } from "../kit/world.ts";

test("D21: of 20 machines that pair under one name at once exactly one gets it; each other one is told who has it", async (t) => {
  const world = await createWorld(t);
  const codes = await Promise.all(
    Array.from({ length: 20 }, () => world.admin.call("pairingCreate", { body: { name: "anna" } })),
  );
  const answers = await Promise.allSettled(codes.map(({ code }) => pairWith(world.url, code, newNodeKey())));
  const refused = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason as Error] : []));
  assert.equal(refused.length, 19);
  for (const error of refused) {
    assert.equal(codeOf(error), "node_name_taken");
    assert.match(error.message, /a node named anna exists .* holdfast node pair anna --take-over/);
  }
  assert.equal((await world.admin.call("nodeList", {})).items.length, 1);
});

test("D19, D20, D25: a machine that was set up anew takes its node over: the same node, the old credential refused, its leases back, and all of it in the audit", async (t) => {
  const world = await createWorld(t);
  const old = await world.node("anna");
  const { id: jobId } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const claimed = await old.claim(1);
  assert.equal(claimed.length, 1);
  const taken = await world.admin.call("pairingCreate", { body: { name: "anna" } }).catch((error: Error) => error);
  assert.match(String(taken), /last seen 20\d\d-.*holdfast node pair anna --take-over/);
  const again = await world.admin.call("pairingCreate", { body: { name: "anna", takeOver: true } });
  const key = newNodeKey();
  const { nodeId } = await pairWith(world.url, again.code, key);
  assert.equal(nodeId, old.nodeId);
  await assert.rejects(old.heartbeat(), { code: "unauthenticated" });
  assert.equal((await world.admin.call("jobShow", { params: { jobId } })).state, "queued");
  const fresh = new NodeDouble({ baseUrl: world.url, nodeId, credential: key.credential });
  await fresh.hello();
  const [event] = await world.sql<{ actor: string; data: { key: string; address: string; name: string } }>(
    "select actor, data from app.audit where action = 'node.take-over'",
  );
  assert.equal(event?.actor, again.id);
  assert.equal(event?.data.key, fingerprint(key.publicKey));
  assert.equal(event?.data.name, "anna");
  await assert.rejects(world.admin.call("pairingCreate", { body: { name: "nobody", takeOver: true } }), {
    code: "not_found",
  });
});

test("D24: two machines with one machine-id, and all else alike, are two nodes", async (t) => {
  const world = await createWorld(t);
  const [anna, berta] = [await world.node("anna"), await world.node("berta")];
  assert.notEqual(anna.nodeId, berta.nodeId);
  await Promise.all([anna.heartbeat(), berta.heartbeat()]);
  assert.deepEqual(
    (await world.admin.call("nodeList", {})).items.map(({ online }) => online),
    [true, true],
  );
});

test("D27: a credential that died while its machine was away is refused with that cause, not with silence", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("anna");
  await world.sql("update app.credential set expires_at = now() - interval '1 second' where node_id = $1", [
    node.nodeId,
  ]);
  await assert.rejects(node.hello(), (error: Error) => /unknown, expired or revoked/.test(error.message));
});

test("D28: who used a code first is told: when, from where, with which key; a second machine is refused and audited", async (t) => {
  const world = await createWorld(t);
  const made = await world.admin.call("pairingCreate", { body: { name: "anna" } });
  const [first, second] = [newNodeKey(), newNodeKey()];
  const { nodeId } = await pairWith(world.url, made.code, first);
  await assert.rejects(pairWith(world.url, made.code, second), { code: "pairing_code_used" });
  const shown = await world.admin.call("pairingShow", { params: { pairingId: made.id } });
  assert.equal(shown.nodeId, nodeId);
  assert.equal(shown.usedFrom, "127.0.0.1");
  assert.equal(shown.keyFingerprint, fingerprint(first.publicKey));
  assert.ok(shown.usedAt);
  const events = await world.sql<{ action: string; subject: string; data: { key: string; address: string } }>(
    "select action, subject, data from app.audit where actor = $1 order by id",
    [made.id],
  );
  const seen = events.map(({ action, subject, data }) => [action, subject, data.address, data.key]);
  assert.deepEqual(seen, [
    ["node.enrol", nodeId, "127.0.0.1", fingerprint(first.publicKey)],
    ["node.pair-refused", made.id, "127.0.0.1", fingerprint(second.publicKey)],
  ]);
});

test("D22: an enrolment that dies at each of its steps in turn, again and again, makes one node, and the same code works", async (t) => {
  const world = await createWorld(t);
  const { code } = await world.admin.call("pairingCreate", { body: { name: "anna" } });
  const root = directoryOf(t);
  let steps = 0;
  for (let dieAt = 1; ; dieAt++) {
    // A root as a death at that step leaves it: nothing after the step was done, by this process or by the controller's answer.
    if (!(await pairUntil(dieAt, { url: world.url, code, root }))) break;
    steps = dieAt;
    assert.ok((await world.admin.call("nodeList", {})).items.length <= 1);
  }
  assert.ok(steps >= 10, `${steps} steps were tried`);
  assert.ok(loadCredential(root));
  assert.equal((await world.admin.call("nodeList", {})).items.length, 1);
});

class Died extends Error {}

type Enrolment = { readonly url: string; readonly code: string; readonly root: string };

/** Ends as a killed process does at its nth change of a file or word to the controller; false when there were fewer. */
async function pairUntil(dieAt: number, { url, code, root }: Enrolment): Promise<boolean> {
  let step = 0;
  const isDead = (): boolean => ++step >= dieAt;
  const changes = ["mkdirSync", "openSync", "writeFileSync", "fsyncSync", "renameSync", "rmSync"] as const;
  const kept = changes.map((name) => [name, fs[name]] as const);
  for (const [name, real] of kept)
    Object.assign(fs, {
      [name]: (...args: unknown[]) => {
        if (isDead()) throw new Died(name);
        return Reflect.apply(real, fs, args) as unknown;
      },
    });
  const deadly: typeof fetch = async (input, init) => {
    if (isDead()) throw new Died("before the controller heard");
    const response = await fetch(input, init);
    if (isDead()) throw new Died("before its answer was read");
    return response;
  };
  try {
    // As the program does it at each start.
    finishPairing(root);
    if (loadAgentConfig(root) !== undefined) return false;
    await pair({ client: createClient({ baseUrl: url, fetch: deadly }), code, root, random: systemRandom });
    return false;
  } catch (error) {
    if (step < dieAt) throw error;
    return true;
  } finally {
    for (const [name, real] of kept) Object.assign(fs, { [name]: real });
  }
}

function directoryOf(t: Ending): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "enrolled-"));
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const fingerprint = (publicKey: string): string =>
  createHash("sha256").update(Buffer.from(publicKey, "base64url")).digest("hex");
