// SPDX-License-Identifier: Apache-2.0
// A state file that somebody damaged, through the command: nothing is signalled on it, each command says what is wrong, and
// strangers whose pids stand in it live on.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test, type TestContext } from "node:test";
import { bootId, identityOf } from "../../src/std/process.ts";
import { type RunningStub, startStub } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import {
  editStateFile,
  freePorts,
  isRunning,
  launchesOf,
  modelOf,
  pidOf,
  readStateFile,
  stateFileOf,
} from "./cases-kit.ts";
import { createSceneMachine, type Ran, type SceneMachine, stub } from "./kit.ts";

const REFUSED = 110;

type Prepared = { readonly machine: SceneMachine; readonly pid: number; readonly good: string };

/** A machine whose one model runs; good: its state file. */
async function prepared(t: TestContext): Promise<Prepared> {
  const machine = await createSceneMachine(t);
  const [port = 0] = await freePorts(1);
  machine.write({ models: stub("only", { port }), scenes: { one: { models: ["only"] } } });
  await machine.ok("scene", "activate", "one");
  const pid = pidOf(await machine.status(), "only");
  return { machine, pid, good: fs.readFileSync(stateFileOf(machine), "utf8") };
}

const livesOn = ({ process: child }: RunningStub): boolean => child.exitCode === null && child.signalCode === null;

test("records that name no process for certain are shown with the reason, and nothing is signalled on them", async (t) => {
  const { machine, pid } = await prepared(t);
  const [a = 0, b = 0] = await freePorts(2);
  const strangers = [startStub(t, { port: a, alias: "a" }), startStub(t, { port: b, alias: "b" })];
  const [first = 0, second = 0] = strangers.map(({ process: child }) => child.pid ?? 0);
  await until("the strangers run", () => isRunning(first) && isRunning(second));
  const boot = { boot_id: bootId(), process_start_ticks: "1000" };
  const bad: Record<string, Record<string, unknown>> = {
    zero: { ...boot, pid: 0 },
    minus: { ...boot, pid: -1 },
    init: { ...boot, pid: 1 },
    large: { ...boot, pid: 2 ** 31 },
    text: { ...boot, pid: "12 34" },
    float: { ...boot, pid: first + 0.5 },
    none: { ...boot },
    bootless: { pid: first, process_start_ticks: identityOf(first)?.startTicks },
    startless: { boot_id: bootId(), pid: second },
  };
  editStateFile(machine, (state) => Object.assign(state.models, bad));
  const status = await machine.status();
  for (const name of Object.keys(bad)) {
    const { condition, why, pid: shown } = modelOf(status, name);
    assert.deepEqual([condition, shown], ["legacy", null], name);
    assert.match(why, /which is no process of a model|without the boot|without its start/, name);
  }
  for (const [args, said] of [
    [["scene", "stop"], /zero is not stopped: its pid is 0, which is no process of a model; stop it yourself/],
    [["scene", "activate", "one"], /minus may run, and nothing proves which process it is: its pid is -1/],
    [["scene", "resume"], /bootless may run, and nothing proves .* without the boot; stop it yourself/],
  ] as const) {
    const ran = await machine.run(...args);
    assert.notEqual(ran.code, 0, `${args.join(" ")}: ${ran.stdout}`);
    assert.match(ran.stderr, said);
  }
  assert.ok(strangers.every(livesOn), "the strangers live");
  assert.ok(isRunning(pid), "what is ours and healthy runs on");
  assert.deepEqual(Object.keys(readStateFile(machine).models).toSorted(), ["only", ...Object.keys(bad)].toSorted());
});

test("records of another boot, another start or another process are dead, and their pids are not signalled", async (t) => {
  const { machine, pid } = await prepared(t);
  const [a = 0] = await freePorts(1);
  const stranger = startStub(t, { port: a, alias: "a" });
  const identity = await until("the stranger runs", () => identityOf(stranger.process.pid ?? 0));
  const record = { pid: identity.pid, boot_id: identity.bootId, process_start_ticks: identity.startTicks };
  editStateFile(machine, ({ models }) => {
    models["booted"] = { ...record, boot_id: "00000000-0000-4000-8000-000000000000" };
    models["started"] = { ...record, process_start_ticks: "1" };
    models["launched"] = { ...record, process_start_ticks: "1", launch_id: "model-one-nothing-1" };
  });
  const status = await machine.status();
  for (const name of ["booted", "started", "launched"]) assert.equal(modelOf(status, name).condition, "dead", name);
  await machine.ok("scene", "resume");
  const after = await machine.status();
  assert.deepEqual(
    after.models.map(({ name, pid: of }) => [name, of]),
    [["only", pid]],
  );
  assert.ok(livesOn(stranger));
});

test("a file that cannot be read: the copy is used to report and to serve, and nothing is switched or ended on it", async (t) => {
  const { machine, pid, good } = await prepared(t);
  const file = stateFileOf(machine);
  // The copy is of before the last write; here it is a good one that names the scene.
  for (const [what, text, said] of [
    ["torn", good.slice(0, good.length - 40) + "\n  - {", /state\.yaml is damaged/],
    ["empty", "", /state\.yaml is empty/],
    ["text", "active_scene: [one]\n", /active_scene is no name/],
  ] as const) {
    fs.writeFileSync(file, text);
    fs.writeFileSync(`${file}.bak`, good);
    const status = await machine.status();
    assert.match(status.doubt ?? "", said, what);
    assert.deepEqual([status.active, pidOf(status, "only")], ["one", pid], what);
  }
  const resumed = await machine.ok("scene", "resume");
  assert.match(
    resumed,
    /nothing is switched or stopped on what the version before it says; activate or adopt a scene to go on/,
  );
  assert.equal(fs.readFileSync(file, "utf8"), "active_scene: [one]\n", "a resume leaves the file for people");
  const stopped = await machine.run("scene", "stop");
  assert.equal(stopped.code, REFUSED, stopped.stderr);
  assert.match(stopped.stderr, /active_scene is no name/);
  assert.equal(await machine.ask(), "only");
  fs.writeFileSync(`${file}.bak`, "");
  for (const args of [["resume"], ["stop"], ["activate", "one"], ["adopt", "one"]]) await unreadable(machine, args);
  assert.ok(isRunning(pid));
  // As it is told: both are moved away, and what runs is adopted as what it is.
  fs.rmSync(file);
  fs.rmSync(`${file}.bak`);
  await machine.ok("scene", "adopt", "one");
  await machine.ok("scene", "resume");
  const adopted = await machine.status();
  assert.deepEqual([adopted.active, adopted.doubt, pidOf(adopted, "only")], ["one", null, pid]);
  assert.deepEqual([modelOf(adopted, "only").launchId], launchesOf(machine));
});

test("an agent that finds a torn file serves what is proved, and is certain again once a scene is activated", async (t) => {
  const { machine, pid, good } = await prepared(t);
  const file = stateFileOf(machine);
  fs.writeFileSync(`${file}.bak`, good);
  fs.rmSync(file);
  const agent = await machine.agent();
  await until("it has looked", () => agent.stderr().includes("nothing is switched or stopped"));
  assert.match((await machine.status()).doubt ?? "", /state\.yaml is gone/);
  assert.equal(await machine.ask(), "only");
  await machine.ok("scene", "activate", "one");
  const status = await machine.status();
  assert.deepEqual([status.doubt, pidOf(status, "only")], [null, pid], "what is proved is kept");
  agent.process.kill("SIGTERM");
  await agent.ended;
});

async function unreadable(machine: SceneMachine, args: readonly string[]): Promise<void> {
  const ran: Ran = await machine.run("scene", ...args);
  assert.match(`${ran.stdout}${ran.stderr}`, /active_scene is no name/, args.join(" "));
  if (args[0] !== "resume") assert.equal(ran.code, REFUSED, `${args.join(" ")}: ${ran.stderr}`);
}
