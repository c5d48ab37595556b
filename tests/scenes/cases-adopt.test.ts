// SPDX-License-Identifier: Apache-2.0
// Adopting what somebody started by hand: bound to its identity as it is, or every reason at once why not; from then on it is
// switched like any other.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { stringify } from "yaml";
import { cleanupOf } from "../kit/cleanup.ts";
import { stubModel, type StubModelOptions } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { editStateFile, freePorts, isRunning, launchesOf, modelOf, pidOf, stateFileOf, statsOf } from "./cases-kit.ts";
import { createSceneMachine, stub } from "./kit.ts";

const REFUSED = 110;

/** As a person would from a shell: the leader of its own group, unless it is a part of somebody else's. */
async function byHand(t: TestContext, options: StubModelOptions & { port: number }, isLeader = true): Promise<number> {
  const [command = "", ...args] = stubModel(options);
  const argv = isLeader ? ["-c", 'exec "$@"', "sh"] : ["-c", '"$@" &', "sh"];
  const child = spawn("sh", [...argv, command, ...args], { stdio: "ignore", detached: true });
  cleanupOf(t).defer(() => {
    try {
      process.kill(-(child.pid ?? 0), "SIGKILL");
    } catch {
      // A switch or another signal was faster.
    }
  });
  await until("it is there", async () => (await statsOf(options.port)) !== undefined);
  return (await statsOf(options.port))?.pid ?? 0;
}

test("a scene that was started by hand is adopted, kept by a switch that needs it, and stopped by one that does not", async (t) => {
  const machine = await createSceneMachine(t);
  const [a = 0, b = 0, c = 0] = await freePorts(3);
  machine.write({
    models: { ...stub("first", { port: a }), ...stub("second", { port: b }), ...stub("third", { port: c }) },
    scenes: {
      hand: { models: ["first", "second"], gateways: { main: "first" } },
      next: { models: ["second", "third"], gateways: { main: "third" } },
    },
  });
  const pids = [await byHand(t, { port: a, alias: "first" }), await byHand(t, { port: b, alias: "second" })];
  const [first = 0, second = 0] = pids;
  await machine.ok("scene", "adopt", "hand");
  const adopted = await machine.status();
  assert.deepEqual([adopted.active, adopted.desired], ["hand", "hand"]);
  assert.deepEqual([pidOf(adopted, "first"), pidOf(adopted, "second")], pids);
  assert.ok(adopted.models.every(({ condition, launchId }) => condition === "healthy" && launchId === null));
  assert.deepEqual(launchesOf(machine), [], "nothing was started");
  assert.equal(await machine.ask(), "first");
  await machine.ok("scene", "activate", "next");
  assert.equal(isRunning(first), false);
  assert.equal(pidOf(await machine.status(), "second"), second, "what both have is never restarted");
  assert.equal(await machine.ask(), "third");
});

test("an adoption that cannot be exact tells every reason at once, and binds, starts and stops nothing", async (t) => {
  const machine = await createSceneMachine(t);
  const [loading = 0, wrong = 0, absent = 0, foreign = 0, part = 0, recorded = 0] = await freePorts(6);
  const models = { loading, wrong, absent, part, recorded };
  machine.write({
    models: {
      ...Object.fromEntries(Object.entries(models).flatMap(([name, port]) => Object.entries(stub(name, { port })))),
      ...stub("foreign", { port: foreign }),
    },
    scenes: { all: { models: Object.keys(models), gateways: { main: "wrong" } }, other: { models: ["foreign"] } },
  });
  const pids = [
    await byHand(t, { port: loading, alias: "loading", hangs: true }),
    await byHand(t, { port: wrong, alias: "another" }),
    await byHand(t, { port: foreign, alias: "foreign" }),
    await byHand(t, { port: part, alias: "part" }, false),
    await byHand(t, { port: recorded, alias: "recorded" }),
  ];
  // A state of before, whose records have pids only.
  fs.mkdirSync(path.dirname(stateFileOf(machine)));
  const old = { models: { recorded: { pid: 4_000_000 }, absent: { note: "no pid at all" } } };
  fs.writeFileSync(stateFileOf(machine), stringify(old));
  const before = fs.readFileSync(stateFileOf(machine), "utf8");
  const refused = await machine.run("scene", "adopt", "all");
  assert.equal(refused.code, REFUSED, refused.stderr);
  for (const reason of [
    /loading: marker: status 503/,
    /wrong: marker: it says "another", not "wrong"/,
    new RegExp(`absent: nothing listens on 127.0.0.1:${absent}`),
    /part: its process \d+ is in group \d+, which no process leads/,
    /recorded: its record says pid 4000000, and the one that listens belongs to group \d+/,
    new RegExp(`foreign, which is not of scene all, is serving on port ${foreign}`),
  ])
    assert.match(refused.stderr, reason);
  assert.equal(fs.readFileSync(stateFileOf(machine), "utf8"), before);
  assert.deepEqual(launchesOf(machine), []);
  assert.ok(pids.every(isRunning));
  // As soon as the record says who it is, a legacy one becomes exact.
  editStateFile(machine, ({ models: records }) => {
    records["foreign"] = { pid: pids[2] };
    delete records["recorded"];
    delete records["absent"];
  });
  assert.equal(modelOf(await machine.status(), "foreign").condition, "legacy");
  const others = await machine.run("scene", "adopt", "other");
  assert.match(others.stderr, /recorded, which is not of scene other, is serving/);
  process.kill(pids[4] ?? 0, "SIGKILL");
  process.kill(pids[3] ?? 0, "SIGKILL");
  await until("they are gone", () => !isRunning(pids[4] ?? 0) && !isRunning(pids[3] ?? 0));
  await machine.ok("scene", "adopt", "other");
  const { condition, pid } = modelOf(await machine.status(), "foreign");
  assert.deepEqual([condition, pid], ["healthy", pids[2]]);
});
