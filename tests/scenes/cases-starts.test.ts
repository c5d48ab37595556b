// SPDX-License-Identifier: Apache-2.0
// How a start ends: ready is the marker and nothing less, what goes on is waited for, what hangs is not, and no failure sticks.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { until } from "../kit/until.ts";
import { control, freePorts, launchesOf, pidOf, startCommand, statsOf } from "./cases-kit.ts";
import { createSceneMachine, type SceneMachine, stub } from "./kit.ts";

const FAILED = 111;
const MIB = 1024 * 1024;

test("a start ends with the truth", async (t) => {
  const machine = await createSceneMachine(t);
  await t.test("case 24: a load that computes, reads or prints may take long; one that does nothing is given up", () =>
    case24(machine),
  );
  await t.test("case 29: a server that answers 400 for a while after its health is 200 is not served before", () =>
    case29(machine),
  );
  await t.test("case 23: after a start that failed by its time, the next one works", (own) => case23(machine, own));
  await t.test("case 34: a model that prints without end keeps serving, and its files stay within their bound", () =>
    case34(machine),
  );
  await t.test("a model that says another name, or ends while it loads, fails with what it said", () =>
    wrongAnswers(machine),
  );
});

async function case24(machine: SceneMachine): Promise<void> {
  const [a = 0, b = 0, c = 0, d = 0] = await freePorts(4);
  const file = { stall_timeout: "600ms", start_timeout: "1m" };
  machine.write({
    models: {
      ...stub("computes", { port: a, loadMs: 1800, loadBy: "cpu", file }),
      ...stub("reads", { port: b, loadMs: 1800, loadBy: "file", file }),
      ...stub("prints", { port: c, loadMs: 1800, loadBy: "output", file }),
      ...stub("hung", { port: d, hangs: true, file }),
    },
    scenes: { moving: { models: ["computes", "reads", "prints"] }, hung: { models: ["hung"] } },
  });
  await machine.ok("scene", "activate", "moving");
  const before = launchesOf(machine);
  const failed = await machine.run("scene", "activate", "hung");
  assert.equal(failed.code, FAILED, failed.stderr);
  assert.match(failed.stderr, /hung: it hangs: no output, CPU time or bytes read for \d\.\d s \(marker: .*503/);
  assert.match(failed.stderr, /moving is restored/);
  assert.deepEqual(launchesOf(machine), before, "what served runs on, untouched");
  await machine.ok("scene", "stop");
}

async function case29(machine: SceneMachine): Promise<void> {
  const [port = 0] = await freePorts(1);
  machine.write({
    models: stub("early", { port, refuseMs: 500, file: { health: "/health" } }),
    scenes: { early: { models: ["early"] } },
  });
  const activating = machine.ok("scene", "activate", "early");
  const asked = until("the gateway lets it through", async () => {
    const answer = await machine.ask();
    assert.ok(answer === "early" || /^503|^refused/.test(answer), `an app was told: ${answer}`);
    return answer === "early";
  });
  await Promise.all([activating, asked]);
  await machine.ok("scene", "stop");
}

async function case23(machine: SceneMachine, t: TestContext): Promise<void> {
  const [port = 0] = await freePorts(1);
  machine.write({
    models: stub("late", { port, hangs: true, file: { start_timeout: "900ms" } }),
    scenes: { late: { models: ["late"] } },
  });
  const failed = await machine.run("scene", "activate", "late");
  assert.equal(failed.code, FAILED);
  assert.match(failed.stderr, /late: not healthy in \d\.\d s \(marker: .*503/);
  assert.deepEqual(launchesOf(machine), [], "nothing of it is left");
  machine.write({
    models: stub("late", { port, hangs: true, file: { start_timeout: "20s" } }),
    scenes: { late: { models: ["late"] } },
  });
  const second = startCommand(t, machine, "scene", "activate", "late");
  await until("it is told to be ready", async () => (await control(port, { hangs: false }))?.isReady);
  assert.equal(await second.ended, 0, second.output());
  const status = await machine.status();
  assert.deepEqual([status.active, status.lastError], ["late", null]);
  await machine.ok("scene", "stop");
}

async function case34(machine: SceneMachine): Promise<void> {
  const [port = 0] = await freePorts(1);
  machine.write({
    models: stub("noisy", { port, printMbPerS: 200, printMs: 60_000 }),
    scenes: { noisy: { models: ["noisy"] } },
  });
  await machine.ok("scene", "activate", "noisy");
  const { pid } = (await statsOf(port)) ?? assert.fail("it does not answer");
  const directory = path.join(machine.root, "node", "launches", launchesOf(machine)[0] ?? "");
  let most = 0;
  await until("it has printed 150 MB", async () => {
    const sizes = fs.readdirSync(directory).map((name) => sizeOf(path.join(directory, name)));
    most = Math.max(
      most,
      sizes.reduce((sum, size) => sum + size, 0),
    );
    const written = Number(/^wchar: (\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/io`, "latin1"))?.[1]);
    assert.equal(await machine.ask(), "noisy", "it answers meanwhile");
    return written > 150_000_000;
  });
  assert.ok(most > 8 * MIB && most <= 26 * MIB, `${most} bytes`);
  assert.match(await machine.ok("scene", "logs", "noisy", "--bytes", "100"), /x{50}/);
  await machine.ok("scene", "stop");
}

function sizeOf(file: string): number {
  return fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

async function wrongAnswers(machine: SceneMachine): Promise<void> {
  const [a = 0, b = 0, c = 0] = await freePorts(3);
  machine.write({
    models: {
      ...stub("true", { port: a }),
      ...stub("false", { port: b, alias: "truer" }),
      ...stub("crash", { port: c, crashCode: 7, loadMs: 50 }),
    },
    scenes: { true: { models: ["true"] }, false: { models: ["true", "false"] }, crash: { models: ["crash"] } },
  });
  await machine.ok("scene", "activate", "true");
  const pid = pidOf(await machine.status(), "true");
  const wrong = await machine.run("scene", "activate", "false");
  assert.equal(wrong.code, FAILED);
  assert.match(wrong.stderr, /false: marker: it says "truer", not "false"/);
  const crashed = await machine.run("scene", "activate", "crash");
  assert.equal(crashed.code, FAILED);
  assert.match(crashed.stderr, /crash: it ended: it .*7.*it printed last: stub: error loading model/);
  const status = await machine.status();
  assert.deepEqual([status.active, status.desired, status.transition], ["true", "true", null]);
  assert.equal(pidOf(status, "true"), pid);
  assert.match(status.lastError?.error ?? "", /crash/);
  assert.equal(await machine.ask(), "true");
}
