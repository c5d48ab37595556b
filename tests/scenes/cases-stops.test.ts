// SPDX-License-Identifier: Apache-2.0
// What a stop is worth: nothing of a model is left when it says so, and nothing that is not ours was touched.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { test, type TestContext } from "node:test";
import { allPids } from "../../src/std/process.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { startStub } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import {
  control,
  editStateFile,
  freePorts,
  isListening,
  isRunning,
  launchesOf,
  modelOf,
  pidOf,
  statsOf,
} from "./cases-kit.ts";
import { createSceneMachine, type SceneMachine, stub } from "./kit.ts";

/** Processes of this test, by their port on the command line. */
function processesOf(port: number): readonly number[] {
  return allPids().filter((pid) => {
    try {
      const argv = fs.readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
      return argv.includes("--alias") && argv[argv.indexOf("--port") + 1] === String(port) && isRunning(pid);
    } catch {
      return false;
    }
  });
}

test("a stop leaves nothing of a model, and touches nothing else", async (t) => {
  const machine = await createSceneMachine(t);
  await t.test(
    "case 26: the parent ends at once and the server lives on: it is ended before its port is given away",
    () => case26(machine),
  );
  await t.test(
    "case 36: what a model left behind, deaf to SIGTERM and in a session of its own, is gone after a stop",
    () => case36(machine),
  );
  await t.test("case 14: a record of another boot is dead: its pid is a stranger's, and lives", (own) =>
    case14(own, machine),
  );
  await t.test("case 32: a model that was killed is dead at the next look, also as a zombie that nobody reaps", (own) =>
    case32(own, machine),
  );
  await t.test("case 40: status tells the memory of each model, in RAM and in swap", () => case40(machine));
});

async function case26(machine: SceneMachine): Promise<void> {
  const [port = 0] = await freePorts(1);
  const file = { stop_grace: "300ms" };
  machine.write({
    models: {
      ...stub("old", { port, leaks: "server", leakMs: 60_000, file }),
      ...stub("new", { port, file }),
    },
    scenes: { old: { models: ["old"] }, new: { models: ["new"] } },
  });
  await machine.ok("scene", "activate", "old");
  const server = (await statsOf(port))?.pid ?? 0;
  await machine.ok("scene", "activate", "new");
  assert.equal(isRunning(server), false, "the server that its parent left behind");
  assert.equal(await machine.ask(), "new");
  assert.equal(processesOf(port).length, 1);
  await machine.ok("scene", "stop");
}

async function case36(machine: SceneMachine): Promise<void> {
  const [port = 0] = await freePorts(1);
  machine.write({
    models: stub("holder", { port, leaks: "holder", leakMb: 20, ignoresTerm: true, file: { stop_grace: "300ms" } }),
    scenes: { holder: { models: ["holder"] } },
  });
  await machine.ok("scene", "activate", "holder");
  await until("both are there", () => processesOf(port).length === 2);
  const { stderr } = await machine.run("scene", "stop");
  const seconds = Number(/holder +stopped +(\d+\.\d) s/.exec(stderr)?.[1]);
  assert.ok(seconds < 8, `by the grace of scenes.yaml, not by the usual 10 s: ${stderr}`);
  assert.deepEqual(processesOf(port), []);
  assert.equal(await isListening(port), false);
  assert.deepEqual([(await machine.status()).active, launchesOf(machine)], [null, []]);
}

async function case14(t: TestContext, machine: SceneMachine): Promise<void> {
  const [port = 0, other = 0] = await freePorts(2);
  machine.write({ models: stub("booted", { port }), scenes: { booted: { models: ["booted"] } } });
  await machine.ok("scene", "activate", "booted");
  const ours = pidOf(await machine.status(), "booted");
  const stranger = startStub(t, { port: other, alias: "stranger" });
  const boot = "00000000-0000-4000-8000-000000000000";
  editStateFile(machine, ({ models }) => {
    models["booted"] = { ...models["booted"], boot_id: boot, pid: stranger.process.pid };
    delete models["booted"]["launch_id"];
  });
  const status = await machine.status();
  assert.deepEqual(
    [modelOf(status, "booted").condition, modelOf(status, "booted").why],
    ["dead", "its process is gone"],
  );
  await machine.ok("scene", "stop");
  assert.equal(stranger.process.exitCode ?? stranger.process.signalCode, null, "the stranger lives");
  assert.ok(isRunning(ours), "what no record names is not ended by a stop");
  // No state knows that launch: the next resume ends it.
  const resumed = await machine.run("scene", "resume");
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.match(resumed.stderr, /which no state knew, was ended/);
  assert.equal(isRunning(ours), false);
}

async function case32(t: TestContext, machine: SceneMachine): Promise<void> {
  const [a = 0, b = 0] = await freePorts(2);
  machine.write({
    models: { ...stub("ours", { port: a }), ...stub("theirs", { port: b }) },
    scenes: { ours: { models: ["ours"] }, theirs: { models: ["theirs"] } },
  });
  await machine.ok("scene", "activate", "ours");
  process.kill((await statsOf(a))?.pid ?? 0, "SIGKILL");
  await until("its shim has ended too", async () => modelOf(await machine.status(), "ours").condition === "dead");
  await machine.ok("scene", "stop");
  // A parent that never waits: its child is a zombie once it is killed.
  const [command = "", ...args] = (stub("theirs", { port: b })["theirs"] as { argv: string[] }).argv;
  const parent = spawn("sh", ["-c", 'setsid "$@" & exec sleep 300', "sh", command, ...args], { stdio: "ignore" });
  cleanupOf(t).defer(() => void parent.kill("SIGKILL"));
  await until("it serves", async () => (await statsOf(b))?.isReady);
  await machine.ok("scene", "adopt", "theirs");
  const { pid } = (await statsOf(b)) ?? { pid: 0 };
  await control(b, {});
  process.kill(pid, "SIGKILL");
  await until("it is a zombie", () => /^\d+ \(.*\) Z/.test(fs.readFileSync(`/proc/${pid}/stat`, "latin1")));
  const { condition, why } = modelOf(await machine.status(), "theirs");
  assert.deepEqual([condition, why], ["dead", "its process is gone"]);
  await machine.ok("scene", "stop");
}

async function case40(machine: SceneMachine): Promise<void> {
  const [port = 0] = await freePorts(1);
  machine.write({ models: stub("heavy", { port, holdMb: 100 }), scenes: { heavy: { models: ["heavy"] } } });
  await machine.ok("scene", "activate", "heavy");
  const { memory } = modelOf(await machine.status(), "heavy");
  assert.ok((memory?.anonymousBytes ?? 0) + (memory?.swappedBytes ?? 0) > 100_000_000, JSON.stringify(memory));
  assert.match(await machine.ok("scene", "status"), /MEMORY +SWAP/);
  await machine.ok("scene", "stop");
}
