// SPDX-License-Identifier: Apache-2.0
// The floor beside the kernel's killer, in a real control group that allows less memory than the machine has: with the floor
// nothing is killed and the least important model gives way; without it the kernel kills.

import assert from "node:assert/strict";
import { test } from "node:test";
import { control, freePorts, pidOf } from "./cases-kit.ts";
import { createSceneMachine, stub } from "./kit.ts";
import { createMemoryGroup } from "./memory-group.ts";
import { until } from "../kit/until.ts";

const MIB = 1024 * 1024;
const LIMIT_BYTES = 1200 * MIB;
const FLOOR_BYTES = 512 * MIB;

test("the floor is there before the kernel's killer: in a control group with a limit a model that grows is stopped, and nothing is killed", async (t) => {
  const group = createMemoryGroup(t, LIMIT_BYTES);
  const machine = await createSceneMachine(t);
  const [calm = 0, greedy = 0] = await freePorts(2);
  machine.write({
    models: { ...stub("calm", { port: calm }), ...stub("greedy", { port: greedy, file: { stop_grace: "200ms" } }) },
    scenes: { both: { models: ["calm", "greedy"], gateways: { main: "calm" } } },
  });
  const agent = await machine.agent({ floorBytes: FLOOR_BYTES, group: group.directory });
  await machine.ok("scene", "activate", "both");
  const pid = pidOf(await machine.status(), "calm");
  await control(greedy, { growMbPerS: 150 });
  await until("the model that grows is stopped", () => /model greedy/.test(agent.stderr()));
  await until("there is memory again", () => /memory is above the floor again/.test(agent.stderr()));
  assert.match(agent.stderr(), new RegExp(`${group.limitFile} of ${group.directory}`));
  assert.equal(pidOf(await machine.status(), "calm"), pid);
  assert.equal(await machine.ask(), "calm");
  assert.equal(group.kills(), 0);
});

test("without a floor the kernel kills in that group", async (t) => {
  const group = createMemoryGroup(t, LIMIT_BYTES);
  const machine = await createSceneMachine(t);
  const [greedy = 0] = await freePorts(1);
  machine.write({ models: stub("greedy", { port: greedy }), scenes: { one: { models: ["greedy"] } } });
  await machine.agent({ group: group.directory });
  await machine.ok("scene", "activate", "one");
  await control(greedy, { growMbPerS: 1000 });
  await until("the kernel kills", () => group.kills() > 0);
});
