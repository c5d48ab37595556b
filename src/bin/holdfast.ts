// SPDX-License-Identifier: Apache-2.0
// The command: puts the terminal together, runs the command tree, and turns what went wrong into one clear line and an exit
// code. The long-running programs are loaded only when they are asked for.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type Command, CommanderError } from "commander";
import { buildProgram } from "../cli/program.ts";
import type { Programs } from "../cli/programs.ts";
import type { Terminal } from "../cli/terminal.ts";
import { errorRow, isErrorCode } from "../protocol/errors.ts";
import { systemClock } from "../std/clock.ts";
import { Failure, messageOf } from "../std/errors.ts";
import { controllerUnit } from "../enrol/controller-unit.ts";
import { trustAlso } from "./tls.ts";
import { VERSION } from "./version.ts";

const terminal: Terminal = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  clock: systemClock,
  newKey: () => crypto.randomUUID(),
  onInterrupt: (listener) => {
    const once = withoutEcho(listener);
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, once);
    return {
      [Symbol.dispose]: () => {
        for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, once);
      },
    };
  },
  readSecrets: async (questions) => (await import("./secrets.ts")).readSecrets(questions),
  trust: trustAlso,
  readFile: (file) => (file === "-" ? readStandardInput() : readFile(file, "utf8")),
};

async function readStandardInput(): Promise<string> {
  let text = "";
  for await (const piece of process.stdin) text += String(piece);
  return text;
}

const ECHO_MS = 200;

/**
 * One Ctrl-C may come twice: the terminal signals the whole group, and a starter on an older Node passes it on as well.
 * What follows within 200 ms is the same wish.
 */
function withoutEcho(listener: () => void): () => void {
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    const now = systemClock.monotonicMs();
    if (now - last <= ECHO_MS) return;
    last = now;
    listener();
  };
}

/** Aborts on the first SIGINT, SIGTERM or SIGHUP; a second one ends the process at once. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  const again = withoutEcho(() => {
    if (stop.signal.aborted) process.exit(130);
    stop.abort();
  });
  const onSignal = (signal: string): void => {
    if (signal === "SIGHUP") stop.abort();
    else again();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => onSignal(signal));
  }
  // A terminal that is closed must not keep a program from stopping in order.
  process.stdout.removeListener("error", endQuietly);
  process.stdout.on("error", () => {});
  return stop.signal;
}

const programs: Programs = {
  up: async (options) => (await import("./up.ts")).up(options, process.env, stopSignal()),
  controller: async (options) => (await import("./controller.ts")).runController(options, process.env, stopSignal()),
  agent: async (options) => (await import("./agent.ts")).runAgentCommand(options, process.env, stopSignal()),
  enrol: async (options) => (await import("./enrol.ts")).enrolMachine(options, process.env),
  gateway: async (options) => (await import("./gateway.ts")).runGateway(options, process.env, stopSignal()),
  gatewayMetrics: async (options) => (await import("./gateway-metrics.ts")).gatewayMetrics(options, process.env),
  backup: async (options) => (await import("./backup.ts")).backup(options, process.env, stopSignal()),
  restore: async (options) => (await import("./backup.ts")).restore(options, process.env, stopSignal()),
  launchList: async (options) => (await import("./launch.ts")).launchList(options, process.env),
  launchShow: async (options) => (await import("./launch.ts")).launchShow(options, process.env),
  launchStop: async (options) => (await import("./launch.ts")).launchStop(options, process.env),
  controllerUnit: (options) =>
    controllerUnit({
      node: process.execPath,
      program: fileURLToPath(new URL("holdfast.js", import.meta.url)),
      ...options,
    }),
  scene: async ({ operation, emit, signal, ...options }) =>
    (await import("./scene.ts")).sceneOperation({ ...options, operation }, process.env, { emit, signal }),
  sceneList: async (options) => (await import("./scene-file.ts")).listScenes(options, process.env),
  sceneInit: async (options) => (await import("./scene-file.ts")).initScenes(options, process.env),
  sceneImport: async (options) => (await import("./scene-file.ts")).importScenes(options, process.env),
  sceneVerify: async (options) => (await import("./scene-verify.ts")).verifyScene(options, process.env),
  repoKey: async (options) => (await import("./repo.ts")).repoKey(options, process.env),
  repoVerify: async (options) => (await import("./repo.ts")).repoVerify(options, process.env),
  scenePull: async (options) => (await import("./repo.ts")).scenePull(options, process.env),
  sceneLogs: async (options) => (await import("./scene-verify.ts")).readSceneLogs(options, process.env),
  agentUnit: async (options) => (await import("./agent-unit.ts")).agentUnitOf(options, process.env),
  upgradeCheck: async (options) => (await import("./upgrade.ts")).upgradeCheck(options, process.env),
  showBoundary: async (options) => (await import("./boundary.ts")).showBoundary(options, process.env),
  resetBoundary: async (options) => (await import("./boundary.ts")).resetBoundaryOf(options, process.env),
  devicesStatus: async () => (await import("./devices.ts")).devicesStatus(),
  protectDevices: async (wish) => (await import("./devices.ts")).protectDevices(wish),
  unprotectDevices: async () => (await import("./devices.ts")).unprotectDevices(),
  checkDevices: async (wish) => (await import("./devices.ts")).checkDevices(wish),
  checkMachine: async (options) => (await import("./doctor.ts")).checkMachine(options, process.env),
  writeSample: async ({ file, ...model }) => (await import("../sample/gguf.ts")).writeSampleModel(file, model),
  serveSample: async (options) => (await import("./sample.ts")).serveSample(options, stopSignal()),
  dbMigrate: async () => (await import("./db.ts")).dbMigrate(process.env),
  dbStatus: async () => (await import("./db.ts")).dbStatus(process.env),
};

function endQuietly(error: NodeJS.ErrnoException): never {
  process.exit(error.code === "EPIPE" ? 0 : 74);
}

type Complaint = { readonly code: string; readonly message: string; readonly details: Failure["details"] };

/** Undefined for what ends a command but is no fault: help and the version. */
function complaintOf(error: unknown): Complaint | undefined {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0 || error.code === "commander.help") return undefined;
    return { code: "usage", message: error.message.replace(/^error: /, ""), details: [] };
  }
  if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND" && isNodesInstallation())
    return {
      code: "usage",
      message: "this installation is a node's: controller, up, db, backup and restore are not in it",
      details: [],
    };
  // The cause of a known failure is already in its sentence, where a person needs it.
  if (error instanceof Failure && isErrorCode(error.code)) return error;
  return { code: "internal", message: messageOf(error), details: [] };
}

/** As the bootstrap script leaves it: without the controller's part. */
function isNodesInstallation(): boolean {
  return !existsSync(fileURLToPath(new URL("../controller", import.meta.url)));
}

function complain(error: unknown): number {
  const complaint = complaintOf(error);
  if (complaint === undefined)
    return error instanceof CommanderError && error.exitCode === 0 ? 0 : errorRow("usage").exit;
  const { code, message, details } = complaint;
  const row = errorRow(code);
  if (wantsJson()) {
    process.stderr.write(`${JSON.stringify({ code, message, details })}\n`);
    return row.exit;
  }
  process.stderr.write(`holdfast: ${message}\n`);
  for (const { place, problem } of details) process.stderr.write(`  ${place}: ${problem}\n`);
  const isBug = code === "internal" && !(error instanceof Failure);
  process.stderr.write(`  ${isBug ? "This is a bug in Holdfast. HOLDFAST_DEBUG=1 shows where." : row.advice}\n`);
  if (process.env["HOLDFAST_DEBUG"] === "1" && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  return row.exit;
}

let acting: Command | undefined;

/** What the command was given; before one is known, whether --json stands where it can only be ours. */
function wantsJson(): boolean {
  if (acting !== undefined) return acting.opts()["json"] === true;
  const dashes = process.argv.indexOf("--");
  return process.argv.slice(0, dashes < 0 ? undefined : dashes).includes("--json");
}

// A reader that went away (head, a closed pager) is no fault.
process.stdout.on("error", endQuietly);
// Nor is one of the messages: what was asked for goes on.
process.stderr.on("error", () => {});

const program = buildProgram({
  terminal,
  programs,
  version: VERSION,
  setExitCode: (code) => void (process.exitCode = code),
});
program.hook("preAction", (_, command) => {
  acting = command;
});
try {
  await program.parseAsync(process.argv);
} catch (error) {
  process.exitCode = complain(error);
}
