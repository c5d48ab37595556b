// SPDX-License-Identifier: Apache-2.0
// The memory floor with memory that is really taken: what is ours is stopped in time, the least important first, and it is said
// who used the memory.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { availableMemory } from "../../src/scenes/memory.ts";
import { freePort } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { createSceneMachine, stub } from "./kit.ts";

const MIB = 1024 * 1024;

test("case 42: a model that grows by 2 GB/s is stopped before memory is a gigabyte under the floor; what is more important stays", async (t) => {
  const machine = await createSceneMachine(t);
  const [calm, greedy] = [await freePort(), await freePort()];
  machine.write({
    models: {
      ...stub("calm", { port: calm }),
      ...stub("greedy", { port: greedy, file: { stop_grace: "200ms" } }),
    },
    scenes: { both: { models: ["calm", "greedy"], gateways: { main: "calm" } } },
  });
  await machine.ok("scene", "activate", "both");
  const before = await machine.status();
  const floorBytes = (availableMemory()?.bytes ?? 0) - 2048 * MIB;
  const agent = await machine.agent({ floorBytes });
  let least = Number.MAX_SAFE_INTEGER;
  await fetch(`http://127.0.0.1:${greedy}/control`, {
    method: "POST",
    body: JSON.stringify({ growMbPerS: 2000 }),
  });
  await until("it is stopped", async () => {
    least = Math.min(least, availableMemory()?.bytes ?? 0);
    return /model greedy/.test(agent.stderr()) && (availableMemory()?.bytes ?? 0) > floorBytes;
  });
  assert.ok(least > floorBytes - 1024 * MIB, `${(floorBytes - least) / MIB} MiB under the floor`);
  assert.match(agent.stderr(), /are the floor; most memory: .*stub-model-main.*uses/);
  const calmPid = before.models.find(({ name }) => name === "calm")?.pid;
  const after = await machine.status();
  assert.equal(after.models.find(({ name }) => name === "calm")?.pid, calmPid);
  assert.equal(await machine.ask(), "calm");
  // Once there is memory again it is brought back.
  await until("the scene is whole again", async () => {
    const { models } = await machine.status();
    return models.length === 2 && models.every(({ condition }) => condition === "healthy");
  });
});

test("case 44: when a stranger takes the memory, it is named; what is ours gives way, the agent and the gateway never", async (t) => {
  const machine = await createSceneMachine(t);
  const port = await freePort();
  machine.write({ models: stub("only", { port }), scenes: { one: { models: ["only"] } } });
  await machine.ok("scene", "activate", "one");
  // The floor is above what there is: as if a stranger had taken the rest. Swap, free or not, is no help (case 43).
  const agent = await machine.agent({ floorBytes: (availableMemory()?.bytes ?? 0) + 512 * MIB });
  await until(
    "it says who uses the memory, and that nothing is left",
    () => /model only/.test(agent.stderr()) && /nothing of ours is left to stop/.test(agent.stderr()),
  );
  assert.match(agent.stderr(), /most memory: .* uses /);
  const status = await machine.status();
  assert.deepEqual(status.models, []);
  assert.equal(agent.process.exitCode, null);
  assert.match(await machine.ask(), /^503 /);
  const refused = await machine.run("scene", "activate", "one");
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /memory/);
  assert.ok(fs.existsSync(machine.root));
});
