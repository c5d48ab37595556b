// SPDX-License-Identifier: Apache-2.0
// Ctrl-C on a switch undoes it cleanly, and of switches that are asked for at once one is carried out and the others are told
// whose it is; with an agent and without.

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { until } from "../kit/until.ts";
import { freePorts, isRunning, launchesOf, pidOf, startCommand } from "./cases-kit.ts";
import { createSceneMachine, type SceneMachine, stub } from "./kit.ts";

const BUSY = 112;

async function prepared(t: TestContext): Promise<{ machine: SceneMachine; pid: number }> {
  const machine = await createSceneMachine(t);
  const [a = 0, b = 0] = await freePorts(2);
  machine.write({
    models: {
      ...stub("base", { port: a }),
      ...stub("other", { port: a }),
      ...stub("slow", { port: b, hangs: true, file: { stall_timeout: "15s" } }),
    },
    scenes: {
      base: { models: ["base"] },
      other: { models: ["other"] },
      slow: { models: ["slow"] },
      // Needs the port of what serves: it is stopped first, and must come back.
      breaking: { models: ["other", "slow"], gateways: { main: "slow" } },
    },
  });
  await machine.ok("scene", "activate", "base");
  return { machine, pid: pidOf(await machine.status(), "base") };
}

for (const who of ["a command that acts by itself", "the agent"] as const)
  test(`Ctrl-C on a switch by ${who} undoes it: the former scene serves, and nothing of the target is left`, async (t) => {
    const { machine, pid } = await prepared(t);
    if (who === "the agent") await machine.agent();
    await until("nothing is under way", async () => (await machine.status()).busy === null);
    for (const target of ["slow", "breaking"]) {
      const command = startCommand(t, machine, "scene", "activate", target);
      await until("it loads", () => /slow +loading/.test(command.output()));
      command.process.kill("SIGINT");
      const code = await command.ended;
      assert.notEqual(code, 0, command.output());
      const status = await until("it is undone", async () => {
        const seen = await machine.status();
        return seen.busy === null && seen.transition === null ? seen : undefined;
      });
      assert.deepEqual([status.active, status.desired], ["base", "base"], JSON.stringify(status));
      assert.match(status.lastError?.error ?? "", /interrupted|given up/);
      assert.equal(status.lastError?.restore, "base is restored");
      assert.equal(launchesOf(machine).length, 1, launchesOf(machine).join());
      assert.equal(await machine.ask(), "base");
      if (target === "slow") assert.ok(isRunning(pid), "what served was never stopped");
    }
  });

test("case 22: of switches to different scenes that are asked for at once one wins each time, and the others are told who", async (t) => {
  const { machine } = await prepared(t);
  for (const who of ["commands", "agent"]) {
    if (who === "agent") await machine.agent();
    await until("nothing is under way", async () => (await machine.status()).busy === null);
    const all = ["base", "other", "base", "other", "base"].map((scene) => ({
      scene,
      command: startCommand(t, machine, "scene", "activate", scene),
    }));
    const won = new Set<string>();
    for (const { scene, command } of all) {
      const code = await command.ended;
      if (code === 0) won.add(scene);
      else {
        assert.equal(code, BUSY, command.output());
        assert.match(
          command.output(),
          who === "agent" ? /a switch to \w+ is not over yet/ : /are being changed by pid \d+/,
        );
      }
    }
    assert.ok(won.size > 0, "somebody won");
    const { active, desired, transition, models } = await machine.status();
    assert.ok(active !== null && won.has(active), `${active} is none of ${[...won].join()}`);
    assert.deepEqual([desired, transition, models.map(({ name }) => name)], [active, null, [active]]);
    assert.equal(launchesOf(machine).length, 1);
    assert.equal(await machine.ask(), active);
  }
});
