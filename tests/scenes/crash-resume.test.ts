// SPDX-License-Identifier: Apache-2.0
// Agents that die one after the other at ever later steps of a resume, of an adoption and under the memory floor: the one that
// lives at last brings the node to the same end.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SceneStatus } from "../../src/scenes/operations.ts";
import { availableMemory } from "../../src/scenes/memory.ts";
import { freePort } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { createSceneMachine, type SceneMachine, stub } from "./kit.ts";

async function machineWithTwo(t: Parameters<typeof createSceneMachine>[0]): Promise<SceneMachine> {
  const machine = await createSceneMachine(t);
  const [a, b] = [await freePort(), await freePort()];
  machine.write({
    models: { ...stub("red", { port: a }), ...stub("blue", { port: a }), ...stub("side", { port: b }) },
    scenes: {
      one: { models: ["red", "side"], gateways: { main: "red" } },
      two: { models: ["blue", "side"], gateways: { main: "blue" } },
    },
  });
  return machine;
}

/** Agents that die at the first, second, … step, until one has no such step any more; how many died. */
async function dieOneAfterTheOther(machine: SceneMachine, isOver: () => Promise<boolean>): Promise<number> {
  for (let dieAt = 1; ; dieAt++) {
    const agent = await machine.agent({ dieAt });
    const end = await until(`agent ${dieAt} dies or is done`, async () => {
      if (agent.process.signalCode !== null) return "died";
      return (await isOver().catch(() => false)) ? "done" : undefined;
    });
    if (end === "done") return dieAt - 1;
    assert.equal(await agent.ended, "SIGKILL");
  }
}

test("P8: agents that die at ever later steps of a resume leave a switch that is ended at last, without a second copy of a model", async (t) => {
  const machine = await machineWithTwo(t);
  await machine.ok("scene", "activate", "one");
  const side = (await machine.status()).models.find(({ name }) => name === "side")?.pid;
  // In the middle of the switch: the wish is written, and the gateway holds.
  assert.equal(await (await machine.agent({ activate: "two", dieAt: 4 })).ended, "SIGKILL");
  const isOver = async (): Promise<boolean> => {
    const { active, transition, busy, models } = await machine.status();
    return (
      active === "two" &&
      transition === null &&
      busy === null &&
      models.every(({ condition }) => condition === "healthy")
    );
  };
  assert.ok((await dieOneAfterTheOther(machine, isOver)) >= 4);
  const { models } = await machine.status();
  assert.deepEqual(models.map(({ name }) => name).toSorted(), ["blue", "side"]);
  assert.equal(models.find(({ name }) => name === "side")?.pid, side);
  assert.equal(await machine.ask(), "blue");
});

const pidsOf = ({ models }: SceneStatus): readonly string[] =>
  models.map(({ name, pid }) => `${name} ${pid}`).toSorted();

test("an adoption that dies before or after its one write has not happened, or has, as a whole", async (t) => {
  const machine = await machineWithTwo(t);
  await machine.ok("scene", "activate", "one");
  const before = await machine.status();
  for (const dieAt of [1, 2]) {
    const killed = await machine.agent({ adopt: "one", dieAt });
    assert.equal(await killed.ended, "SIGKILL");
    const after = await machine.status();
    assert.deepEqual([after.active, after.desired, pidsOf(after)], ["one", "one", pidsOf(before)]);
  }
});

test("agents that die at ever later steps under the memory floor stop what must go, and the last one says so", async (t) => {
  const machine = await machineWithTwo(t);
  await machine.ok("scene", "activate", "one");
  // As if a stranger had the memory: everything must go, and nothing may come back.
  const floorBytes = (availableMemory()?.bytes ?? 0) + 1024 ** 3;
  for (let dieAt = 1; ; dieAt++) {
    const agent = await machine.agent({ dieAt, floorBytes });
    const end = await until(
      `agent ${dieAt} dies or is done`,
      () => {
        if (agent.process.signalCode !== null) return "died";
        return /nothing of ours is left to stop/.test(agent.stderr()) ? "done" : undefined;
      },
      { withinMs: 60_000 },
    );
    if (end === "done") break;
  }
  assert.deepEqual((await machine.status()).models, []);
  assert.match(await machine.ask(), /^503 /);
});
