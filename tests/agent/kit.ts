// SPDX-License-Identifier: Apache-2.0
// Real agents beside a real controller: each test's machine has a root of its own; an agent is a process that can be killed.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { AgentCommand } from "../../src/bin/agent.ts";
import type { Job } from "../../src/protocol/job-schema.ts";
import { readProcessStat } from "../../src/std/process.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";
import type { World } from "../kit/world.ts";
import { compileCache } from "../kit/compile-cache.ts";

const main = fileURLToPath(new URL("agent-main.ts", import.meta.url));

export type RunningAgent = {
  readonly process: ChildProcess;
  readonly stderr: () => string;
  /** Exit code, or the name of the signal. */
  readonly ended: Promise<number | string>;
};

export type Machine = {
  readonly root: string;
  readonly start: (options?: AgentCommand, env?: Record<string, string>) => RunningAgent;
  /** Kills everything of it. */
  readonly launches: () => readonly string[];
};

export function createMachine(t: TestContext): Machine {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast agent "));
  const launches = path.join(root, "node", "launches");
  const list = (): readonly string[] =>
    fs.existsSync(launches) ? fs.readdirSync(launches).filter((name) => !name.startsWith(".")) : [];
  const agents: RunningAgent[] = [];
  cleanupOf(t).defer(async () => {
    for (const agent of agents) agent.process.kill("SIGKILL");
    await Promise.all(agents.map((agent) => agent.ended));
    for (const launch of list()) killLaunch(path.join(launches, launch));
    fs.rmSync(root, { recursive: true, force: true });
  });
  return {
    root,
    launches: list,
    start: (options = {}, env = {}) => {
      const command: AgentCommand = { root, stopGraceMs: 300, ...options };
      const child = spawn(process.execPath, [main, JSON.stringify(command)], {
        stdio: ["pipe", "ignore", "pipe"],
        env: { PATH: process.env["PATH"] ?? "", ...compileCache, ...env },
      });
      let text = "";
      child.stderr.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      const ended = new Promise<number | string>((resolve) =>
        child.once("close", (code, signal) => resolve(code ?? signal ?? "?")),
      );
      const agent: RunningAgent = { process: child, stderr: () => text, ended };
      agents.push(agent);
      return agent;
    },
  };
}

/** What a failed test left running: by the shim's identity file, its group. */
function killLaunch(directory: string): void {
  try {
    const { pid } = JSON.parse(fs.readFileSync(path.join(directory, "identity"), "utf8")) as { pid: number };
    process.kill(pid, "SIGUSR1");
  } catch {
    // It has ended.
  }
}

/** A machine that is paired and whose agent is online. */
export async function startNode(
  t: TestContext,
  world: World,
  name: string,
  options: AgentCommand = {},
): Promise<{ machine: Machine; agent: RunningAgent; nodeId: string }> {
  const machine = createMachine(t);
  const { code } = await world.admin.call("pairingCreate", { body: { name } });
  const agent = machine.start({ join: world.url, slots: 2, ...options }, { HOLDFAST_PAIRING_CODE: code });
  const node = await until(`${name} is online`, async () => {
    const ended = agent.process.exitCode;
    if (ended !== null) assert.fail(`the agent ended with ${ended}: ${agent.stderr()}`);
    const { items } = await world.admin.call("nodeList", {});
    return items.find((each) => each.name === name && each.online);
  });
  return { machine, agent, nodeId: node.id };
}

export async function jobState(world: World, jobId: string, state: Job["state"]): Promise<Job> {
  return until(`${jobId} is ${state}`, async () => {
    const job = await world.admin.call("jobShow", { params: { jobId } });
    return job.state === state ? job : undefined;
  });
}

export async function outputOf(world: World, jobId: string, stream: "stdout" | "stderr" = "stdout"): Promise<string> {
  const { chunks } = await world.admin.call("jobLogs", { params: { jobId } });
  return chunks
    .filter((chunk) => chunk.stream === stream)
    .map((chunk) => chunk.text)
    .join("");
}

/** A job that writes its pid, then waits until the file is there. */
export function waitingCommand(file: string): string[] {
  return ["sh", "-c", `echo pid $$; while [ ! -e '${file}' ]; do sleep 0.02; done; echo over`];
}

export async function pidOf(world: World, jobId: string): Promise<number> {
  return until(`${jobId} wrote its pid`, async () =>
    Number(/^pid (\d+)$/m.exec(await outputOf(world, jobId))?.[1] ?? 0),
  );
}

export function isRunning(pid: number): boolean {
  const stat = readProcessStat(pid);
  return stat !== undefined && stat.state !== "Z";
}
