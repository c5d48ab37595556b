// SPDX-License-Identifier: Apache-2.0
// `holdfast up`: database, controller and agent on this machine, and a first real job. Everything that it started ends
// with it, in reverse order; the data stays. The agent is a process of its own and is paired through the real route.

import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createClient, type Client } from "../client/client.ts";
import { gibibytes } from "../protocol/placement.ts";
import type { Node } from "../protocol/node-schema.ts";
import { systemClock } from "../std/clock.ts";
import { Failure, messageOf } from "../std/errors.ts";
import { runFirstJob } from "./first-job.ts";
import { keepContext } from "./controller.ts";
import { openEmbedded } from "./database.ts";
import { fileLog } from "./logs.ts";
import { startController } from "../controller/controller.ts";
import { configFrom, type Environment, listenFrom, rootFrom } from "./settings.ts";
import { Steps } from "./steps.ts";
import { VERSION } from "./version.ts";

export type UpOptions = {
  /** Run the first job and end. */
  readonly once?: boolean;
  readonly listen?: string;
  readonly root?: string;
};

/** How long the agent has to come online before up gives up on it. */
const ONLINE_WITHIN_MS = 30_000;
const AGENT_STOP_MS = 10_000;

/** Runs until the signal aborts (or at once after the job, with once); returns the exit code. */
export async function up(options: UpOptions, env: Environment, signal: AbortSignal): Promise<number> {
  const began = systemClock.monotonicMs();
  const root = rootFrom(env, options.root);
  const steps = new Steps(process.stdout, systemClock);
  steps.title(`holdfast ${VERSION}`);
  await using stack = new AsyncDisposableStack();
  const failed = new AbortController();
  const ending = AbortSignal.any([signal, failed.signal]);

  const database = await steps.run("database", () => openEmbedded({ root, stack }));
  steps.note(`PostgreSQL ${database.serverVersion} in ${path.join(root, "database")}`);
  void database.exited.then((why) =>
    failed.abort(new Failure("database_unavailable", `the embedded PostgreSQL ended by itself: ${why}`)),
  );

  const { host, port } = listenFrom(env, options.listen);
  const log = fileLog(path.join(root, "controller.log"));
  const controller = await steps.run("controller", async () =>
    stack.use(
      await startController({
        db: database.db,
        listenConnection: database.listenConnection,
        log,
        host,
        port,
        config: { ...configFrom(env), version: VERSION },
      }),
    ),
  );
  steps.note(controller.url);

  const client = createClient({
    baseUrl: controller.url,
    credential: await keepContext(env, controller.url, database.replaceToken),
  });
  const agent = await steps.run("node", async () => {
    const started = await startAgent({ client, root, env });
    stack.defer(() => stopAgent(started));
    return { process: started, node: await online(client, root, started, ending) };
  });
  agent.process.once("exit", (code) =>
    failed.abort(
      new Failure(
        "controller_unreachable",
        `the agent ended by itself with exit code ${code}: see ${path.join(root, "agent.log")}`,
      ),
    ),
  );
  steps.note(describe(agent.node));

  const exitCode = await runFirstJob({ client, steps, signal: ending, directory: checkout });
  steps.line();
  steps.line(
    `Ready in ${((systemClock.monotonicMs() - began) / 1000).toFixed(1)} s.${options.once === true ? "" : " In a second terminal:"}`,
  );
  if (options.once !== true && !ending.aborted) {
    for (const command of ["npx holdfast status", "npx holdfast job run -- uname -a", "npx holdfast job list"])
      steps.line(`  ${command}`);
    steps.line("Ctrl-C stops everything; the data stays.");
    await aborted(ending);
  }
  if (failed.signal.aborted) throw failed.signal.reason;
  steps.line("Stopping …");
  await stack.disposeAsync();
  steps.line("Stopped. Nothing is left running.");
  return options.once === true ? exitCode : 0;
}

const checkout = fileURLToPath(new URL("../..", import.meta.url));

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

type AgentOptions = { readonly client: Client; readonly root: string; readonly env: Environment };

/** Starts the agent; a machine that is not paired yet gets a pairing code first. */
async function startAgent({ client, root, env }: AgentOptions): Promise<ChildProcess> {
  const isPaired =
    fs.existsSync(path.join(root, "node", "agent.json")) && (await pairedNode(client, root)) !== undefined;
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
  const { nodeId } = JSON.parse(fs.readFileSync(path.join(root, "node", "agent.json"), "utf8")) as { nodeId?: string };
  const { items } = await client.call("nodeList", {});
  return items.find((node) => node.id === nodeId && node.status !== "retired");
}

/** A code for this machine's host name, or the next free name after it. */
async function pairingCode(client: Client): Promise<string> {
  const os = await import("node:os");
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

async function online(client: Client, root: string, agent: ChildProcess, signal: AbortSignal): Promise<Node> {
  const until = systemClock.monotonicMs() + ONLINE_WITHIN_MS;
  const hint = `see ${path.join(root, "agent.log")}`;
  while (systemClock.monotonicMs() < until && !signal.aborted) {
    if (agent.exitCode !== null || agent.signalCode !== null) {
      throw new Failure(
        "controller_unreachable",
        `the agent ended with exit code ${agent.exitCode ?? agent.signalCode} before it was online: ${lastLine(root) || hint}`,
      );
    }
    const isPaired = fs.existsSync(path.join(root, "node", "agent.json"));
    const node = isPaired ? await pairedNode(client, root).catch(() => undefined) : undefined;
    if (node?.online === true) return node;
    await systemClock.sleep(50, signal);
  }
  if (signal.aborted)
    throw signal.reason instanceof Failure
      ? signal.reason
      : new Failure("stopping", "stopped before the node was online");
  throw new Failure(
    "controller_unreachable",
    `the agent did not come online within ${ONLINE_WITHIN_MS / 1000} s: ${hint}`,
  );
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

function describe(node: Node): string {
  const { facts } = node;
  if (facts === null) return node.name;
  const gpus = facts.devices.filter((device) => device.kind === "gpu");
  const gpuText =
    gpus.length === 0
      ? "no GPU"
      : gpus.map((gpu) => `${gpu.name}${gpu.state === "ok" ? "" : ` (${gpu.state})`}`).join(", ");
  return `${node.name}: ${facts.cpuCount} CPUs, ${gibibytes(facts.memoryTotalBytes)}, ${gpuText}`;
}
