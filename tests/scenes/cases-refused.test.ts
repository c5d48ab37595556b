// SPDX-License-Identifier: Apache-2.0
// Scenes that cannot work are refused before anything is stopped: the one that serves goes on, with the same process.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { writeSampleModel } from "../../src/sample/gguf.ts";
import { startStub, stubModel } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { control, digestOf, freePorts, isRunning, launchesOf, pidOf, startCommand } from "./cases-kit.ts";
import { createSceneMachine, type SceneMachine, stub } from "./kit.ts";

const REFUSED = 110;
const INVALID = 109;

type Served = { readonly machine: SceneMachine; readonly port: number; readonly other: number; readonly pid: number };

async function served(t: TestContext): Promise<Served> {
  const machine = await createSceneMachine(t);
  const [port = 0, other = 0] = await freePorts(2);
  write({ machine, port }, {}, {});
  await machine.ok("scene", "activate", "good");
  return { machine, port, other, pid: pidOf(await machine.status(), "good") };
}

/** The good scene and what is beside it. */
function write(
  { machine, port }: Pick<Served, "machine" | "port">,
  models: Readonly<Record<string, unknown>>,
  scenes: Readonly<Record<string, unknown>>,
): void {
  machine.write({
    models: { ...stub("good", { port }), ...models },
    scenes: { good: { models: ["good"] }, ...scenes },
  });
}

async function refuses(
  { machine, pid }: Served,
  args: readonly string[],
  code: number,
  said: readonly RegExp[],
): Promise<void> {
  const before = launchesOf(machine);
  const ran = await machine.run(...args);
  assert.equal(ran.code, code, ran.stderr);
  for (const words of said) assert.match(ran.stderr, words);
  assert.deepEqual(launchesOf(machine), before);
  assert.ok(isRunning(pid), "what serves was not stopped");
  assert.equal(await machine.ask(), "good");
}

test("what cannot work is refused while the scene that serves goes on", async (t) => {
  const one = await served(t);
  await t.test("case 20: a command that lacks its model is refused, also by a dry run", () => case20(one));
  await t.test("case 46: two models on one port in a scene are refused, whatever address they are given", () =>
    case46(one),
  );
  await t.test("case 47: a model file that is missing, empty, none at all or cut off is refused before any stop", () =>
    case47(one),
  );
  await t.test("case 30: a stranger on the port is named with pid, command and start, and nothing is started", (own) =>
    case30(own, one),
  );
  await t.test("a dry run changes nothing: no file and no process", () => dryRun(one));
});

async function case20(one: Served): Promise<void> {
  const server = path.join(one.machine.root, "llama-server");
  fs.writeFileSync(server, "#!/bin/sh\nexec sleep 60\n", { mode: 0o755 });
  write(
    one,
    { router: { argv: [server, "--port", "${PORT}"], port: one.other, marker: "router" } },
    { bad: { models: ["router"] } },
  );
  const said = [/scenes\.yaml:\d+:\d+/, /llama-server is given no model/];
  await refuses(one, ["scene", "activate", "bad", "--dry-run"], INVALID, said);
}

async function case46(one: Served): Promise<void> {
  const model = (name: string, more: object = {}) => ({
    [name]: { argv: stubModel({ alias: name, port: "${PORT}" }), port: one.other, marker: name, ...more },
  });
  write(
    one,
    {
      ...model("first"),
      ...model("named", { host: "localhost" }),
      ...model("six", { host: "::1" }),
      ...model("every", { host: "0.0.0.0" }),
    },
    { bad: { models: ["first", "named", "six", "every"] } },
  );
  const has = (name: string): RegExp =>
    new RegExp(`scenes\\.yaml:\\d+:\\d+: ${name} has port ${one.other}, which first has in the same scene`);
  await refuses(one, ["scene", "check"], INVALID, [has("named"), has("six"), has("every")]);
}

async function case47(one: Served): Promise<void> {
  const model = (name: string, port: number) => ({
    [name]: {
      argv: [...stubModel({ alias: name, port }), "--model", path.join(one.machine.root, `${name}.gguf`)],
      port,
      marker: name,
    },
  });
  fs.writeFileSync(path.join(one.machine.root, "empty.gguf"), "");
  fs.writeFileSync(path.join(one.machine.root, "page.gguf"), "<html>not found</html>");
  const cut = path.join(one.machine.root, "cut.gguf");
  const sizeBytes = writeSampleModel(cut, { name: "cut" });
  fs.truncateSync(cut, sizeBytes - 1);
  write(
    one,
    Object.fromEntries(["missing", "empty", "page", "cut"].flatMap((name) => Object.entries(model(name, one.other)))),
    { bad: { models: ["cut"] } },
  );
  await refuses(one, ["scene", "activate", "bad"], INVALID, [
    /missing\.gguf cannot be read/,
    /empty\.gguf is empty/,
    /page\.gguf is no GGUF file/,
    new RegExp(`cut\\.gguf is cut off: it has ${sizeBytes - 1} bytes, and its tensors end at byte ${sizeBytes}`),
  ]);
}

async function case30(t: TestContext, one: Served): Promise<void> {
  const { machine, other } = one;
  write(one, stub("blocked", { port: other }), { bad: { models: ["blocked"] } });
  const stranger = startStub(t, { port: other, alias: "blocked" });
  await until("the stranger serves", () =>
    stranger.stats().then(
      ({ isReady }) => isReady,
      () => false,
    ),
  );
  const said = [
    new RegExp(`port ${other} of blocked is held by .*pid ${stranger.process.pid}`),
    /started \d{4}-\d\d-\d\dT/,
    /stub-model-main\.ts --port/,
  ];
  await refuses(one, ["scene", "activate", "bad", "--dry-run"], REFUSED, said);
  await refuses(one, ["scene", "activate", "bad"], REFUSED, said);
  assert.equal((await machine.status()).lastError, null, "a refusal is no failure");
  assert.equal(stranger.process.exitCode, null, "the stranger lives");
}

async function dryRun(one: Served): Promise<void> {
  const { machine, other, pid } = one;
  write(one, stub("next", { port: other }), { next: { models: ["next"] } });
  const before = digestOf(machine);
  const told = await machine.ok("scene", "activate", "next", "--dry-run");
  assert.match(told, /good → next\n(.*\n)*.*start +next\n(.*\n)*.*stop +good/);
  assert.equal(digestOf(machine), before);
  assert.ok(isRunning(pid));
  assert.equal(launchesOf(machine).length, 1);
}

test("case 19: a switch that is asked for while a model still loads is refused, naming the first, which succeeds", async (t) => {
  const machine = await createSceneMachine(t);
  const [a = 0, b = 0] = await freePorts(2);
  machine.write({
    models: { ...stub("slow", { port: a, hangs: true }), ...stub("quick", { port: b }) },
    scenes: { slow: { models: ["slow"] }, quick: { models: ["quick"] } },
  });
  for (const who of ["commands", "an agent"]) {
    if (who === "an agent") await machine.agent();
    const first = startCommand(t, machine, "scene", "activate", "slow");
    await until("the first one loads", () => first.output().includes("loading"));
    const second = await machine.run("scene", "activate", "quick");
    assert.equal(second.code, 112, second.stderr);
    const name = who === "an agent" ? /a switch to slow is not over yet/ : new RegExp(`by pid ${first.process.pid}`);
    assert.match(second.stderr, name);
    await until("it is told to be ready", async () => (await control(a, { hangs: false }))?.isReady);
    assert.equal(await first.ended, 0, first.output());
    assert.equal(launchesOf(machine).length, 1);
    assert.equal(await machine.ask(), "slow");
    if (who === "commands") await machine.ok("scene", "stop");
  }
});
