// SPDX-License-Identifier: Apache-2.0
// A node tells its scenes to the controller, and takes a wish for one from afar: it decides, acts once, and says why not.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { stringify } from "yaml";
import { freePort } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";
import { ask, stub } from "../scenes/kit.ts";
import { startNode } from "./kit.ts";

const scenesOf = async (world: World, nodeId: string) =>
  (await world.admin.call("nodeShow", { params: { nodeId } })).scenes;

/** The node's own word on the wish of this number. */
const answered = (world: World, nodeId: string, number: string) =>
  until(`wish ${number} is answered`, async () => {
    const scenes = await scenesOf(world, nodeId);
    return scenes?.wish?.number === number && scenes.wish.state !== "under-way" ? scenes : undefined;
  });

test("P8: a scene is asked for from afar: the node activates it, reports its verified models, and refuses what it cannot do with the reason", async (t) => {
  const world = await createWorld(t);
  const { machine, agent, nodeId } = await startNode(t, world, "one");
  const [red, blue, gateway] = [await freePort(), await freePort(), await freePort()];
  const file = {
    version: 1,
    gateways: { main: { listen: `127.0.0.1:${gateway}` } },
    models: {
      ...stub("red", { port: red }),
      ...stub("blue", { port: blue }),
      ...stub("huge", { port: blue + 1, file: { memory: "90TiB" } }),
    },
    scenes: { warm: { models: ["red"] }, cold: { models: ["blue"] }, vast: { models: ["huge"] } },
  };
  fs.writeFileSync(path.join(machine.root, "scenes.yaml"), stringify(file));

  await world.admin.call("nodeScene", { params: { nodeId }, body: { scene: "warm" } });
  const warm = await answered(world, nodeId, "1");
  assert.deepEqual([warm.wish?.state, warm.active], ["done", "warm"], JSON.stringify(warm));
  const told = await until("its models are told as verified", async () => {
    const model = (await scenesOf(world, nodeId))?.models[0];
    return model?.condition === "healthy" ? model : undefined;
  });
  assert.deepEqual([told.name, told.marker, told.port], ["red", '"red"', red]);
  assert.ok(told.pid !== null && told.startTicks !== null && told.anonymousBytes !== null);
  assert.deepEqual(
    warm.scenes.map(({ name }) => name),
    ["warm", "cold", "vast"],
  );
  assert.equal(await ask(`127.0.0.1:${gateway}`, "/v1/models"), "red");

  await world.admin.call("nodeScene", { params: { nodeId }, body: { scene: "vast" } });
  const refused = await answered(world, nodeId, "2");
  assert.deepEqual([refused.wish?.state, refused.active], ["refused", "warm"]);
  assert.match(refused.wish?.text ?? "", /vast is not activated: memory: 90\.0 TiB/);
  await world.admin.call("nodeScene", { params: { nodeId }, body: { scene: "nowhere" } });
  assert.match(
    (await answered(world, nodeId, "3")).wish?.text ?? "",
    /there is no scene nowhere .* there are warm, cold, vast/,
  );

  // A person on the machine has the last word: a wish is acted on once, whatever life the agent is in.
  agent.process.kill("SIGKILL");
  await agent.ended;
  machine.start();
  await until("the next agent reports", async () => (await scenesOf(world, nodeId))?.wish === null);
  assert.equal((await scenesOf(world, nodeId))?.active, "warm");
  await world.admin.call("nodeScene", { params: { nodeId }, body: { scene: null } });
  assert.equal((await answered(world, nodeId, "4")).active, null);
});

test("a scene of a node that is retired or of nobody is not asked for", async (t) => {
  const world = await createWorld(t);
  const { nodeId } = await startNode(t, world, "one");
  await world.admin.call("nodeRetire", { params: { nodeId } });
  await assert.rejects(world.admin.call("nodeScene", { params: { nodeId }, body: { scene: "x" } }), {
    code: "conflict",
    message: /a retired node switches no scenes/,
  });
  const nobody = nodeId.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
  await assert.rejects(world.admin.call("nodeScene", { params: { nodeId: nobody }, body: { scene: "x" } }), {
    code: "not_found",
  });
});
