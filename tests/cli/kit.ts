// SPDX-License-Identifier: Apache-2.0
// What the tests of the command line share: the command tree without a process, and the real command against a world.

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { type Command, CommanderError } from "commander";
import { buildProgram } from "../../src/cli/program.ts";
import type { Programs } from "../../src/cli/programs.ts";
import { systemClock } from "../../src/std/clock.ts";
import { createHome, type Home } from "../kit/command.ts";
import type { World } from "../kit/world.ts";

const notHere = (): Promise<never> => Promise.reject(new Error("this test starts no program"));

/** Programs that no test of the tree alone starts. */
const IDLE = {
  gatewayMetrics: notHere,
  showBoundary: notHere,
  resetBoundary: notHere,
  devicesStatus: notHere,
  protectDevices: notHere,
  unprotectDevices: notHere,
  checkDevices: notHere,
  checkMachine: notHere,
  dbMigrate: notHere,
  dbStatus: notHere,
  backup: notHere,
  restore: notHere,
  launchList: notHere,
  launchShow: notHere,
  launchStop: notHere,
  scene: notHere,
  sceneList: notHere,
  sceneInit: notHere,
  sceneImport: notHere,
  sceneVerify: notHere,
  sceneLogs: notHere,
  repoKey: notHere,
  repoVerify: notHere,
  scenePull: notHere,
  agentUnit: notHere,
  upgradeCheck: notHere,
  writeSample: notHere,
  serveSample: notHere,
} as const;

export type Tree = {
  readonly program: Command;
  /** Parses these arguments and returns what was printed (as standard error, commander's sentence too), and commander's exit code if it ended the parse. */
  readonly run: (...args: readonly string[]) => Promise<{ stdout: string; stderr: string; exitCode: number }>;
  /** What the programs up, controller and agent were called with. */
  readonly calls: unknown[];
};

export function createTree(env: Readonly<Record<string, string>> = {}): Tree {
  const written = { stdout: "", stderr: "" };
  const calls: unknown[] = [];
  const record = (options: unknown): Promise<number> => {
    calls.push(options);
    return Promise.resolve(0);
  };
  const programs: Programs = {
    ...IDLE,
    up: record,
    controller: record,
    agent: record,
    enrol: async () => "paired",
    gateway: record,
    controllerUnit: (options) => JSON.stringify(options),
  };
  const output = (stream: "stdout" | "stderr") => ({
    write: (text: string): void => {
      written[stream] += text;
    },
  });
  const terminal = {
    stdout: output("stdout"),
    stderr: output("stderr"),
    env,
    clock: systemClock,
    newKey: () => "key",
    onInterrupt: () => ({ [Symbol.dispose]: () => {} }),
    trust: () => {},
    readFile: notHere,
    readSecrets: notHere,
  };
  const program = buildProgram({ terminal, programs, version: "1.2.3", setExitCode: () => {} });
  const run: Tree["run"] = async (...args) => {
    written.stdout = "";
    written.stderr = "";
    try {
      await program.parseAsync(["node", "holdfast", ...args]);
      return { ...written, exitCode: 0 };
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      return { ...written, stderr: written.stderr + error.message, exitCode: error.exitCode };
    }
  };
  return { program, run, calls };
}

/** Every command below this one with the words that lead to it. */
export function commandsOf(
  command: Command,
  path: readonly string[] = [],
): { path: readonly string[]; command: Command }[] {
  return [{ path, command }, ...command.commands.flatMap((child) => commandsOf(child, [...path, child.name()]))];
}

/** A home whose command line talks to this world by environment. */
export function homeOf(t: TestContext, world: World): Home {
  const home = createHome(t);
  const own = { HOLDFAST_URL: world.url, HOLDFAST_TOKEN: world.token };
  return {
    ...home,
    start: (args, env) => home.start(args, { ...own, ...env }),
    run: (args, env, input) => home.run(args, { ...own, ...env }, input),
  };
}

/** A fault is one sentence of ours first, and never a stack trace. */
export function assertClearFault(stderr: string): void {
  assert.match(stderr, /^holdfast: \S/);
  assert.doesNotMatch(stderr, /^\s+at .*[:(]\d+/m);
  assert.doesNotMatch(stderr, /undefined|\[object/);
}
