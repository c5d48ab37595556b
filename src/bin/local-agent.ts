// SPDX-License-Identifier: Apache-2.0
// The agent that `holdfast up` starts on this machine: a process of its own, paired through the real route, tied to its
// parent by a lifeline, and online only when its own heartbeat says so.

import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Client } from "../client/client.ts";
import { loadAgentConfig } from "../enrol/agent-config.ts";
import { agentLockFile } from "../enrol/node-key.ts";
import type { Node } from "../protocol/node-schema.ts";
import { systemClock } from "../std/clock.ts";
import { Failure, messageOf } from "../std/errors.ts";
import { lockHolder } from "../std/lock.ts";
import type { Environment } from "./settings.ts";
import type { Steps } from "./steps.ts";

/** How long the agent has to come online before up gives up on it. */
const ONLINE_WITHIN_MS = 30_000;
const AGENT_STOP_MS = 10_000;
/** How long the agent of an earlier start has to end. */
const OLD_AGENT_MS = 30_000;

export type LocalAgentOptions = {
  readonly client: Client;
  readonly root: string;
  readonly env: Environment;
  readonly steps: Steps;
  readonly signal: AbortSignal;
};

export type LocalAgent = AsyncDisposable & {
  readonly node: Node;
  /** Resolves with how it ended: an exit code or a signal. */
  readonly ended: Promise<string>;
};

/** Resolves when the node is online by this agent's heartbeat. */
export async function startLocalAgent({ client, root, env, steps, signal }: LocalAgentOptions): Promise<LocalAgent> {
  await oldAgentGone(root, steps, signal);
  const before = (await pairedNode(client, root))?.lastHeartbeatAt ?? null;
  const agent = await startAgent({ client, root, env });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => stopAgent(agent));
  const ended = new Promise<string>((resolve) =>
    agent.once("exit", (code, signalName) => resolve(signalName ?? `exit code ${code}`)),
  );
  const node = await online({ client, root, agent, before, signal });
  const running = stack.move();
  return { node, ended, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** The agent of an `up` that was killed ends by its lifeline, as soon as it has given its jobs back. */
async function oldAgentGone(root: string, steps: Steps, signal: AbortSignal): Promise<void> {
  const until = systemClock.monotonicMs() + OLD_AGENT_MS;
  for (let looks = 0; !signal.aborted; looks++) {
    const pid = lockHolder(agentLockFile(root));
    if (pid === undefined) return;
    if (looks === 0)
      steps.line(`    the agent of an earlier start (pid ${pid}) is still giving its jobs back: waiting for it`);
    if (systemClock.monotonicMs() > until) {
      throw new Failure("root_in_use", `another agent runs on ${root} and does not end: pid ${pid}`);
    }
    await systemClock.sleep(100, signal);
  }
}

type AgentOptions = { readonly client: Client; readonly root: string; readonly env: Environment };

/** Starts the agent; a machine that is not paired yet gets a pairing code first. */
async function startAgent({ client, root, env }: AgentOptions): Promise<ChildProcess> {
  const isPaired = (await pairedNode(client, root)) !== undefined;
  const code = isPaired ? undefined : await pairingCode(client);
  const { HOLDFAST_TOKEN: _token, DATABASE_URL: _url, DATABASE_OWNER_URL: _owner, ...inherited } = env;
  const output = fs.openSync(path.join(root, "agent.log"), "a", 0o600);
  const child = spawn(
    process.execPath,
    [
      fileURLToPath(new URL("holdfast.js", import.meta.url)),
      "agent",
      "--root",
      root,
      "--join",
      client.baseUrl,
      "--lifeline",
    ],
    {
      // The pipe on its standard input is its lifeline: it ends when this process does, however that happens.
      stdio: ["pipe", output, output],
      env: { ...inherited, ...(code === undefined ? {} : { HOLDFAST_PAIRING_CODE: code }) },
      // Its own group: the terminal's Ctrl-C reaches this process, which then stops the agent in order.
      detached: true,
    },
  );
  fs.closeSync(output);
  return child;
}

/** The node that this root was paired as, if the controller still knows it. */
async function pairedNode(client: Client, root: string): Promise<Node | undefined> {
  const config = loadAgentConfig(root);
  if (config === undefined) return undefined;
  const { items } = await client.call("nodeList", {});
  return items.find((node) => node.id === config.nodeId && node.status !== "retired");
}

/** A code for this machine's host name, or the next free name after it. */
async function pairingCode(client: Client): Promise<string> {
  const base =
    os
      .hostname()
      .split(".")[0]
      ?.replace(/[^A-Za-z0-9._-]/g, "-")
      .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "") || "node";
  for (let number = 1; ; number++) {
    const name = number === 1 ? base.slice(0, 60) : `${base.slice(0, 55)}-${number}`;
    try {
      return (await client.call("pairingCreate", { body: { name } })).code;
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== "node_name_taken" || number >= 1000) throw error;
    }
  }
}

type Expected = {
  readonly client: Client;
  readonly root: string;
  readonly agent: ChildProcess;
  /** The node's last heartbeat before this agent: an earlier agent's does not count. */
  readonly before: string | null;
  readonly signal: AbortSignal;
};

async function online({ client, root, agent, before, signal }: Expected): Promise<Node> {
  const until = systemClock.monotonicMs() + ONLINE_WITHIN_MS;
  const hint = `see ${path.join(root, "agent.log")}`;
  while (systemClock.monotonicMs() < until && !signal.aborted) {
    if (agent.exitCode !== null || agent.signalCode !== null) {
      throw new Failure(
        "agent_ended",
        `the agent ended with exit code ${agent.exitCode ?? agent.signalCode} before it was online: ${lastLine(root) || hint}`,
      );
    }
    const node = await pairedNode(client, root).catch(() => undefined);
    if (node?.online === true && node.lastHeartbeatAt !== before) return node;
    await systemClock.sleep(50, signal);
  }
  if (signal.aborted)
    throw signal.reason instanceof Failure
      ? signal.reason
      : new Failure("stopping", "stopped before the node was online");
  throw new Failure("agent_ended", `the agent did not come online within ${ONLINE_WITHIN_MS / 1000} s: ${hint}`);
}

function lastLine(root: string): string {
  try {
    return fs.readFileSync(path.join(root, "agent.log"), "utf8").trim().split("\n").at(-1) ?? "";
  } catch (error) {
    return messageOf(error);
  }
}

async function stopAgent(agent: ChildProcess): Promise<void> {
  if (agent.exitCode !== null || agent.signalCode !== null) return;
  const exited = new Promise<void>((resolve) => agent.once("exit", () => resolve()));
  agent.kill("SIGTERM");
  const late = new AbortController();
  const tooLong = systemClock
    .sleep(AGENT_STOP_MS, late.signal)
    .then(() => late.signal.aborted || agent.kill("SIGKILL"));
  await exited;
  late.abort();
  await tooLong;
}
