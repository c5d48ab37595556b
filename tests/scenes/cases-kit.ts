// SPDX-License-Identifier: Apache-2.0
// What the case tests of scenes share: a command that is still running, models told over their own port, and what a machine
// looks like from outside, to compare before and after.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";
import type { ModelStatus, SceneStatus } from "../../src/scenes/operations.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { freePort, type StubModelOptions, type StubStats } from "../kit/stub-model.ts";
import type { SceneMachine } from "./kit.ts";
import { compileCache } from "../kit/compile-cache.ts";

const program = fileURLToPath(new URL("../../src/bin/holdfast.ts", import.meta.url));

export type Command = {
  readonly process: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<number | string>;
};

/** A command that is not waited for; it is ended with the test. */
export function startCommand(t: TestContext, { root }: SceneMachine, ...args: readonly string[]): Command {
  const env = { PATH: process.env["PATH"] ?? "", HOME: root, HOLDFAST_ROOT: root, NO_COLOR: "1", ...compileCache };
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (piece: string) => (output += piece));
  const ended = new Promise<number | string>((resolve) =>
    child.once("close", (code, signal) => resolve(code ?? signal ?? "?")),
  );
  cleanupOf(t).defer(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { process: child, output: () => output, ended };
}

export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}

/** Undefined while the stub does not answer. */
export async function control(port: number, told: Partial<StubModelOptions>): Promise<StubStats | undefined> {
  return post(port, "/control", told);
}

export async function statsOf(port: number): Promise<StubStats | undefined> {
  return post(port, "/stats", {});
}

async function post(port: number, at: string, body: object): Promise<StubStats | undefined> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}${at}`, { method: "POST", body: JSON.stringify(body) });
    return (await answer.json()) as StubStats;
  } catch {
    return undefined;
  }
}

export function modelOf(status: SceneStatus, name: string): ModelStatus {
  return status.models.find((model) => model.name === name) ?? assert.fail(`${name} is not in the status`);
}

export function pidOf(status: SceneStatus, name: string): number {
  return modelOf(status, name).pid ?? assert.fail(`${name} has no process`);
}

export function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(fs.readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1" });
    socket.once("connect", () => socket.destroy() && resolve(true));
    socket.once("error", () => resolve(false));
  });
}

/** Ids of the launches of models, without the gateway's. */
export function launchesOf({ root }: SceneMachine): readonly string[] {
  const directory = path.join(root, "node", "launches");
  if (!fs.existsSync(directory)) return [];
  return fs
    .readdirSync(directory)
    .filter((name) => name.startsWith("model-") && !name.includes("_gateway"))
    .toSorted();
}

type StateFile = { [key: string]: unknown; models: Record<string, Record<string, unknown>> };

export const stateFileOf = ({ root }: SceneMachine): string => path.join(root, ".kuda", "state.yaml");

export function readStateFile(machine: SceneMachine): StateFile {
  return parse(fs.readFileSync(stateFileOf(machine), "utf8")) as StateFile;
}

export function editStateFile(machine: SceneMachine, edit: (state: StateFile) => void): void {
  const state = readStateFile(machine);
  edit(state);
  fs.writeFileSync(stateFileOf(machine), stringify(state));
}

/** All that a machine is made of, but what its running processes write: names, contents, and which processes run. */
export function digestOf({ root }: SceneMachine): string {
  const hash = createHash("sha256");
  for (const name of fs.readdirSync(root, { recursive: true, encoding: "utf8" }).toSorted()) {
    const file = path.join(root, name);
    const stat = fs.lstatSync(file);
    // Taken by every command, and told to nobody.
    if (name === path.join(".kuda", "lock")) continue;
    hash.update(`${name} ${stat.mode} ${stat.isFile() ? fs.readFileSync(file, "base64") : ""}\n`);
  }
  return hash.digest("hex");
}
