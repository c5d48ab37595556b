// SPDX-License-Identifier: Apache-2.0
// The memory that a switch needs: summed to the byte before anything is stopped, and measured after stops; a machine that gives
// less than it says is believed where it says less.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanupOf } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";
import { freePorts, isRunning, pidOf, startCommand } from "./cases-kit.ts";
import { createSceneMachine, type SceneMachine, stub } from "./kit.ts";
import { compileCache } from "../kit/compile-cache.ts";

const main = fileURLToPath(new URL("memory-main.ts", import.meta.url));
const MIB = 1024 * 1024;
const [INVALID, REFUSED, FAILED] = [109, 110, 111];

type Memory = {
  readonly machine: SceneMachine;
  readonly directory: string;
  readonly ports: readonly number[];
  readonly setAvailable: (mebibytes: number) => void;
};

async function prepared(t: TestContext): Promise<Memory> {
  const machine = await createSceneMachine(t);
  const directory = path.join(machine.root, "fake");
  fs.mkdirSync(path.join(directory, "cgroup", "unit"), { recursive: true });
  const setAvailable = (mebibytes: number): void => {
    const text = `MemTotal: 99999999 kB\nMemFree: 10 kB\nMemAvailable: ${mebibytes * 1024} kB\nSwapFree: 99999999 kB\n`;
    fs.writeFileSync(path.join(directory, "meminfo.new"), text);
    fs.renameSync(path.join(directory, "meminfo.new"), path.join(directory, "meminfo"));
  };
  setAvailable(1000);
  fs.writeFileSync(path.join(directory, "self"), "0::/unit\n");
  const mount = `40 30 0:37 / ${path.join(directory, "cgroup")} rw - cgroup2 none rw\n`;
  fs.writeFileSync(path.join(directory, "mountinfo"), mount);
  const files = {
    meminfo: path.join(directory, "meminfo"),
    mountinfo: path.join(directory, "mountinfo"),
    cgroupOf: path.join(directory, "self"),
  };
  const child = spawn(process.execPath, [main, JSON.stringify({ root: machine.root, files, recoveryMs: 1500 })], {
    env: { PATH: process.env["PATH"] ?? "", HOME: machine.root, ...compileCache },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (piece: string) => (said += piece));
  const ended = new Promise((resolve) => child.once("close", resolve));
  cleanupOf(t).defer(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  await until("the agent answers", () => said.includes("ready"));
  return { machine, directory, setAvailable, ports: await freePorts(2) };
}

test("memory decides before and after stops", async (t) => {
  const memory = await prepared(t);
  await t.test("case 39: a need one byte above what is available is refused with exact sums, an equal one is not", () =>
    case39(memory),
  );
  await t.test("case 41: a control group that allows less than MemAvailable says is the bound, and is named", () =>
    case41(memory),
  );
  await t.test("case 37: a stop that gives no memory back ends in a refusal that says how much is missing", () =>
    case37(memory),
  );
  await t.test("case 38: memory that comes back a while after the stop is waited for", (own) => case38(own, memory));
  await t.test("a scenes.yaml that became unreadable takes neither the floor away nor what may be given up", () =>
    brokenFile(memory),
  );
});

/** floor: that much of what is available is left for a model. */
function write({ machine, ports: [a = 0, b = 0] }: Memory, need: string, needOfNext = need): void {
  machine.write({
    floor: "900MiB",
    models: {
      ...stub("now", { port: a, file: { memory: need } }),
      // The port of the first: it must be stopped before.
      ...stub("next", { port: a, file: { memory: needOfNext } }),
      ...stub("beside", { port: b, file: { memory: "64MiB" } }),
    },
    scenes: { now: { models: ["now"] }, next: { models: ["next"] }, beside: { models: ["beside"] } },
  });
}

async function case39(memory: Memory): Promise<void> {
  const { machine } = memory;
  write(memory, String(100 * MIB + 1));
  const refused = await machine.run("scene", "activate", "now");
  assert.equal(refused.code, REFUSED, refused.stderr);
  assert.match(refused.stderr, /\(104857601 bytes\) are needed, .*\(1048576000 bytes\) are available less the floor/);
  assert.match(refused.stderr, /\(1 bytes\) are missing/);
  write(memory, String(100 * MIB));
  await machine.ok("scene", "activate", "now");
}

async function case41({ machine, directory }: Memory): Promise<void> {
  const unit = path.join(directory, "cgroup", "unit");
  fs.writeFileSync(path.join(unit, "memory.max"), String(960 * MIB));
  fs.writeFileSync(path.join(unit, "memory.current"), String(50 * MIB));
  fs.writeFileSync(path.join(unit, "memory.stat"), `anon 1\ninactive_file ${40 * MIB}\n`);
  const { availableMemory } = await machine.status();
  assert.deepEqual(availableMemory, { bytes: 950 * MIB, source: `memory.max of ${unit}` });
  assert.match(await machine.ok("scene", "status"), /950 MiB available \(memory\.max of /);
  const refused = await machine.run("scene", "activate", "beside", "--dry-run");
  assert.equal(refused.code, REFUSED, refused.stderr);
  fs.writeFileSync(path.join(unit, "memory.max"), "max");
}

async function case37(memory: Memory): Promise<void> {
  const { machine, setAvailable } = memory;
  // What runs uses some; what its stop would give back counts in the plan, and must then be there.
  setAvailable(960);
  write(memory, String(100 * MIB), String(61 * MIB));
  const failed = await machine.run("scene", "activate", "next");
  assert.equal(failed.code, FAILED, failed.stderr);
  assert.match(failed.stderr, /waiting for 1048576 bytes of memory/);
  assert.match(failed.stderr, /memory did not come back: 63963136 bytes are needed .* 1048576 are missing/);
  assert.equal((await machine.status()).transition, null);
}

async function case38(t: TestContext, memory: Memory): Promise<void> {
  const { machine, setAvailable } = memory;
  setAvailable(1000);
  write(memory, String(60 * MIB), String(61 * MIB));
  await machine.ok("scene", "activate", "now");
  const before = pidOf(await machine.status(), "now");
  setAvailable(960);
  const command = startCommand(t, machine, "scene", "activate", "next");
  await until("it waits", () => command.output().includes("waiting for 1048576 bytes of memory"));
  setAvailable(970);
  assert.equal(await command.ended, 0, command.output());
  assert.notEqual(pidOf(await machine.status(), "next"), before);
  assert.equal(await machine.ask(), "next");
}

async function brokenFile({ machine, setAvailable }: Memory): Promise<void> {
  const pid = pidOf(await machine.status(), "next");
  machine.write("nonsense: [");
  assert.equal((await machine.run("scene", "check")).code, INVALID);
  setAvailable(899);
  await until("the model is stopped", () => !isRunning(pid));
}
