// SPDX-License-Identifier: Apache-2.0
// The agent that keeps a scene: it comes and goes, and the models do not; what dies is started again, within a budget; what is
// busy is left alone; there is one agent a root, and a root is no other root's business.

import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { cleanupOf } from "../kit/cleanup.ts";
import { startStub } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import {
  control,
  freePorts,
  isListening,
  isRunning,
  launchesOf,
  modelOf,
  pidOf,
  startCommand,
  statsOf,
} from "./cases-kit.ts";
import { type Agent, createSceneMachine, type SceneMachine, stub } from "./kit.ts";

async function end({ process: child, ended }: Agent, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  await ended;
}

test("an agent comes and goes", async (t) => {
  const machine = await createSceneMachine(t);
  const [a = 0, b = 0] = await freePorts(2);
  machine.write({
    models: { ...stub("left", { port: a }), ...stub("right", { port: b }) },
    scenes: { both: { models: ["left", "right"], gateways: { main: "left" } } },
  });
  await machine.ok("scene", "activate", "both");
  await t.test("case 21: an agent is killed, and the next one has the same processes and no second copy", () =>
    case21(machine),
  );
  await t.test("case 31: a restarted agent has the healthy scene active at its first answer, and starts nothing", () =>
    case31(machine),
  );
  await t.test(
    "case 50: 50 streams run on through the restart of the agent, and the new one answers for itself",
    (own) => case50(own, machine),
  );
  await t.test("case 33: a second agent on the root is refused, naming the first", (own) => case33(own, machine));
  await t.test("case 32: a model that is killed under an agent is started again, and its end is in the log", () =>
    case32(machine, a),
  );
  await t.test(
    "a file that is being fetched for another scene keeps no model from being watched and started again",
    () => fetching(machine, [a, b]),
  );
});

async function fetching(machine: SceneMachine, [a = 0, b = 0]: readonly number[]): Promise<void> {
  const file = path.join(machine.root, "next.gguf");
  fs.writeFileSync(file, "GGUF");
  machine.write({
    models: {
      ...stub("left", { port: a }),
      ...stub("right", { port: b }),
      next: { argv: ["sleep", "60", file], port: a, marker: "next" },
    },
    scenes: { both: { models: ["left", "right"], gateways: { main: "left" } }, next: { models: ["next"] } },
  });
  const refused = await machine.run("scene", "activate", "next");
  assert.equal(refused.code, 109, refused.stderr);
  assert.match(refused.stderr, /next\.gguf is cut off: it has 4 bytes/);
  const agent = await machine.agent();
  const pid = pidOf(await machine.status(), "right");
  await control(b, { exitCode: 1 });
  await until("it is started again", async () => {
    const seen = modelOf(await machine.status(), "right");
    return seen.condition === "healthy" && seen.pid !== pid;
  });
  assert.equal(await machine.ask(), "left");
  await end(agent, "SIGTERM");
}

async function case21(machine: SceneMachine): Promise<void> {
  const first = await machine.agent();
  const before = await machine.status();
  const launches = launchesOf(machine);
  await end(first, "SIGKILL");
  const second = await machine.agent();
  const after = await machine.status();
  assert.equal(after.agentPid, second.process.pid);
  for (const name of ["left", "right"]) {
    assert.equal(pidOf(after, name), pidOf(before, name));
    assert.equal(modelOf(after, name).condition, "healthy");
  }
  assert.deepEqual(launchesOf(machine), launches);
  await end(second, "SIGKILL");
}

async function case31(machine: SceneMachine): Promise<void> {
  const launches = launchesOf(machine);
  const agent = await machine.agent();
  const first = await machine.status();
  assert.deepEqual([first.active, first.desired, first.transition], ["both", "both", null]);
  assert.ok(
    first.models.every(({ condition }) => condition === "healthy"),
    JSON.stringify(first.models),
  );
  assert.equal(await machine.ask(), "left");
  await until("the resume is over", async () => (await machine.status()).busy === null);
  assert.deepEqual(launchesOf(machine), launches);
  assert.doesNotMatch(agent.stderr(), /started again|could not/);
  await end(agent, "SIGTERM");
}

/** A stream of many events; how it ended, and how many came. */
function stream(
  t: TestContext,
  { gateway }: SceneMachine,
  answer: object,
): { events: () => number; done: Promise<string> } {
  let text = "";
  const done = new Promise<string>((resolve) => {
    const request = http.request(`http://${gateway}/v1/completions`, { method: "POST", agent: false }, (response) => {
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.once("end", () => resolve(text.includes("[DONE]") ? "whole" : "cut"));
      response.once("error", (error) => resolve(error.message));
    });
    request.once("error", (error) => resolve(error.message));
    request.end(JSON.stringify({ stream: true, stub: answer }));
    cleanupOf(t).defer(() => void request.destroy());
  });
  return { events: () => text.split("data: ").length - 1, done };
}

async function case50(t: TestContext, machine: SceneMachine): Promise<void> {
  const first = await machine.agent();
  const streams = Array.from({ length: 50 }, () => stream(t, machine, { events: 60, gapMs: 50 }));
  await until("all have begun", () => streams.every(({ events }) => events() > 0));
  await end(first, "SIGKILL");
  const second = await machine.agent();
  assert.ok(
    streams.every(({ events }) => events() < 60),
    "the restart fell into the streams",
  );
  assert.equal((await machine.status()).agentPid, second.process.pid);
  assert.deepEqual(new Set(await Promise.all(streams.map(({ done }) => done))), new Set(["whole"]));
  await end(second, "SIGTERM");
}

async function case33(t: TestContext, machine: SceneMachine): Promise<void> {
  const first = startCommand(t, machine, "agent", "--alone");
  // While it begins it holds the scenes and answers nobody yet.
  const keeper = () =>
    machine
      .status()
      .then(({ agentPid }) => agentPid)
      .catch(() => undefined);
  await until("the first one keeps the scenes", async () => (await keeper()) === first.process.pid);
  const second = await machine.run("agent", "--alone");
  assert.notEqual(second.code, 0);
  assert.match(second.stderr, new RegExp(`pid ${first.process.pid}`));
  assert.equal((await machine.status()).agentPid, first.process.pid);
  first.process.kill("SIGTERM");
  assert.equal(await first.ended, 0, first.output());
}

async function case32(machine: SceneMachine, port: number): Promise<void> {
  const agent = await machine.agent();
  const before = await machine.status();
  process.kill((await statsOf(port))?.pid ?? 0, "SIGKILL");
  const after = await until("it is healthy again", async () => {
    const seen = await machine.status();
    const left = seen.models.find(({ name }) => name === "left");
    return left?.condition === "healthy" && left.pid !== pidOf(before, "left") ? seen : undefined;
  });
  assert.equal(pidOf(after, "right"), pidOf(before, "right"), "the other one was left alone");
  assert.match(agent.stderr(), /left.*a model ended|a model ended.*left/);
  assert.equal(await machine.ask(), "left");
  await end(agent, "SIGTERM");
}

test("what goes wrong under an agent ends, and is said", async (t) => {
  const machine = await createSceneMachine(t);
  await t.test("case 48: a model that dies soon after each good start is given up when its budget is used", () =>
    case48(machine),
  );
  await t.test("case 30: when a stranger takes the port of a dead model, it is named, and the attempts end", (own) =>
    case30(own, machine),
  );
  await t.test("case 35: a model that is too busy to answer is not idle and not dead: its long answer comes", (own) =>
    case35(own, machine),
  );
});

async function case48(machine: SceneMachine): Promise<void> {
  const [port = 0, other = 0] = await freePorts(2);
  machine.write({
    models: { ...stub("frail", { port }), ...stub("sound", { port: other }) },
    scenes: { frail: { models: ["frail", "sound"], gateways: { main: "sound" } } },
  });
  const agent = await machine.agent();
  await machine.ok("scene", "activate", "frail");
  const given = await until("it is given up", async () => {
    const seen = await machine.status();
    // Each start is a good one.
    if (seen.busy === null && (await statsOf(port))?.isReady === true) await control(port, { exitCode: 1 });
    return seen.lastError?.error.includes("is given up") === true ? seen : undefined;
  });
  assert.match(given.lastError?.error ?? "", /frail was started again 3 times in 60 s and is given up/);
  assert.equal(agent.stderr().match(/a model is started again/g)?.length, 3);
  assert.equal(modelOf(given, "frail").condition, "dead");
  assert.equal(await machine.ask(), "sound", "what is healthy is served on");
  await machine.ok("scene", "stop");
  await end(agent, "SIGTERM");
}

async function case30(t: TestContext, machine: SceneMachine): Promise<void> {
  const [port = 0] = await freePorts(1);
  machine.write({ models: stub("robbed", { port }), scenes: { robbed: { models: ["robbed"] } } });
  await machine.ok("scene", "activate", "robbed");
  const agent = await machine.agent();
  await until("it has resumed", () => agent.stderr().includes("robbed is active"));
  // So that the stranger is faster.
  agent.process.kill("SIGSTOP");
  process.kill((await statsOf(port))?.pid ?? 0, "SIGKILL");
  await until("its port is free", async () => !(await isListening(port)));
  const stranger = startStub(t, { port, alias: "robbed" });
  await until("the stranger serves", async () => (await statsOf(port))?.isReady);
  agent.process.kill("SIGCONT");
  await until("it is given up", () => agent.stderr().includes("is given up"));
  const status = await machine.status();
  const said = new RegExp(`given up: port ${port} of robbed is held by .*pid ${stranger.process.pid}, started `);
  assert.match(status.lastError?.error ?? "", said);
  assert.equal(agent.stderr().match(/could not be started again/g)?.length, 3);
  assert.match(await machine.ask(), /^503/, "the stranger is never served");
  assert.equal(stranger.process.exitCode ?? stranger.process.signalCode, null);
  await end(agent, "SIGTERM");
  // And the next agent says so too, after one attempt.
  const next = await machine.agent();
  await until("it has tried", () => next.stderr().includes("could not be resumed"));
  const again = (await machine.status()).lastError?.error ?? "";
  assert.match(
    again,
    new RegExp(`robbed is not resumed: port ${port} of robbed is held by .*pid ${stranger.process.pid}`),
  );
  await end(next, "SIGTERM");
  stranger.process.kill("SIGKILL");
  await stranger.ended;
}

async function case35(t: TestContext, machine: SceneMachine): Promise<void> {
  const [port = 0] = await freePorts(1);
  machine.write({ models: stub("thinker", { port }), scenes: { thinker: { models: ["thinker"] } } });
  await machine.ok("scene", "activate", "thinker");
  const pid = (await statsOf(port))?.pid ?? 0;
  const agent = await machine.agent();
  const answer = stream(t, machine, { events: 3, silenceMs: 2_500 });
  await until("it is asked", async () => (await statsOf(port))?.asked === 1);
  assert.equal(await answer.done, "whole");
  assert.ok(isRunning(pid));
  assert.doesNotMatch(agent.stderr(), /started again/);
  await control(port, {});
  await end(agent, "SIGTERM");
}

test("case 45: the agent of one root never touches what another root runs", async (t) => {
  const [one, two] = [await createSceneMachine(t), await createSceneMachine(t)];
  const [a = 0, b = 0] = await freePorts(2);
  one.write({ models: stub("same", { port: a }), scenes: { same: { models: ["same"] } } });
  two.write({ models: stub("same", { port: b }), scenes: { same: { models: ["same"] } } });
  await one.ok("scene", "activate", "same");
  await two.ok("scene", "activate", "same");
  const theirs = pidOf(await two.status(), "same");
  const agent = await one.agent();
  await until("it has resumed", async () => (await one.status()).busy === null);
  await one.ok("scene", "stop");
  await end(agent, "SIGTERM");
  await one.ok("scene", "resume");
  assert.equal(pidOf(await two.status(), "same"), theirs);
  assert.equal(modelOf(await two.status(), "same").condition, "healthy");
  assert.equal(await two.ask(), "same");
});
