// SPDX-License-Identifier: Apache-2.0
// The agent dies at every step of a switch that lasts, one after the other; the next one brings it to the same end as without
// the death: the target is active, by exact markers, and nothing else of ours runs.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { freePort } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { createSceneMachine, stub } from "./kit.ts";

async function ports(count: number): Promise<readonly number[]> {
  const found: number[] = [];
  for (let index = 0; index < count; index++) found.push(await freePort());
  return found;
}

test("P8: an agent that is killed at any step of a switch, both at once, leaves a switch that the next one ends", (t) =>
  diesAtEveryStep(t, true));

test("P8: an agent that is killed at any step of a switch, one after the other, leaves a switch that the next one ends", (t) =>
  diesAtEveryStep(t, false));

async function diesAtEveryStep(t: TestContext, isBothAtOnce: boolean): Promise<void> {
  const machine = await createSceneMachine(t);
  const [a = 0, b = 0, c = 0] = await ports(3);
  // A port that both need rules out that they run at once.
  machine.write({
    models: {
      ...stub("red", { port: a }),
      ...stub("blue", { port: isBothAtOnce ? b : a }),
      ...stub("common", { port: c }),
    },
    scenes: {
      one: { models: ["red", "common"], gateways: { main: "red" } },
      two: { models: ["blue", "common"], gateways: { main: "blue" } },
    },
  });
  await machine.ok("scene", "activate", "one");
  const common = (await machine.status()).models.find(({ name }) => name === "common")?.pid;
  let steps = 0;
  for (let dieAt = 1; ; dieAt++) {
    const [from, to] = dieAt % 2 === 1 ? (["one", "two"] as const) : (["two", "one"] as const);
    const killed = await machine.agent({ activate: to, dieAt });
    const end = await killed.ended;
    const begun = end === "SIGKILL" && dieAt > 1;
    if (end === 0) {
      steps = dieAt - 1;
      break;
    }
    assert.equal(end, "SIGKILL", killed.stderr());
    const next = await machine.agent();
    const status = await until(`the switch that died at step ${dieAt} has ended`, async () => {
      const seen = await machine.status();
      return seen.busy === null && seen.transition === null && seen.active !== null ? seen : undefined;
    });
    // Before the wish was written nothing had begun.
    const expected = begun ? to : from;
    assert.equal(status.active, expected, `step ${dieAt}`);
    assert.deepEqual([status.desired, status.doubt], [expected, null], `step ${dieAt}`);
    const names = [expected === "one" ? "red" : "blue", "common"].toSorted();
    assert.deepEqual(status.models.map(({ name }) => name).toSorted(), names, `step ${dieAt}`);
    assert.ok(
      status.models.every(({ condition }) => condition === "healthy"),
      JSON.stringify(status.models),
    );
    assert.equal(status.models.find(({ name }) => name === "common")?.pid, common, "what both have is never restarted");
    assert.equal(
      await machine.ask(),
      names.find((name) => name !== "common"),
    );
    const launches = fs
      .readdirSync(path.join(machine.root, "node", "launches"))
      .filter((name) => !name.includes("_gateway"));
    assert.equal(launches.length, 2, `step ${dieAt}: ${launches.join()}`);
    next.process.kill("SIGTERM");
    assert.equal(await next.ended, 0, next.stderr());
    // Each round switches the other way.
    if (expected === from) await machine.ok("scene", "activate", to);
  }
  assert.ok(steps >= 10, `only ${steps} steps`);
}
