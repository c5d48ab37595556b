// SPDX-License-Identifier: Apache-2.0
// `holdfast up`: database, controller and agent on this machine, and a first real job. Everything that it started ends
// with it, in reverse order; the data stays. The agent is a process of its own and is paired through the real route.

import path from "node:path";
import { fileURLToPath } from "node:url";
import { type Client, createClient } from "../client/client.ts";
import { gibibytes } from "../protocol/placement.ts";
import type { Node } from "../protocol/node-schema.ts";
import { systemClock } from "../std/clock.ts";
import { Failure } from "../std/errors.ts";
import { runFirstJob } from "./first-job.ts";
import { showScenes } from "./sample-scenes.ts";
import { keepContext } from "./controller.ts";
import { openEmbedded } from "./database.ts";
import { startLocalAgent } from "./local-agent.ts";
import { fileLog } from "./logs.ts";
import { startController } from "../controller/controller.ts";
import { pageDirectory } from "./page.ts";
import { type ServeOptions, servingOf } from "./serve.ts";
import { configFrom, type Environment, rootFrom } from "./settings.ts";
import { Steps } from "./steps.ts";
import { keepTrust, trustAlso } from "./tls.ts";
import { VERSION } from "./version.ts";

export type UpOptions = ServeOptions & {
  /** Run the first job and end. */
  readonly once?: boolean;
  readonly root?: string;
};

/** Runs until the signal aborts (or at once after the job, with once); returns the exit code. */
export async function up(options: UpOptions, env: Environment, signal: AbortSignal): Promise<number> {
  const began = systemClock.monotonicMs();
  const root = rootFrom(env, options.root);
  const { authority, ownUrl, ...serving } = await servingOf(root, options, env);
  if (authority !== undefined) trustAlso(authority);
  const steps = new Steps(process.stdout, systemClock);
  steps.title(`holdfast ${VERSION}`);
  await using stack = new AsyncDisposableStack();
  const failed = new AbortController();
  const ending = AbortSignal.any([signal, failed.signal]);

  const database = await steps.run("database", () => openEmbedded({ root, stack }));
  steps.note(`PostgreSQL ${database.serverVersion} in ${path.join(root, "database")}`);
  void database.exited.then((why) =>
    failed.abort(new Failure("database_ended", `the embedded PostgreSQL ended by itself: ${why}`)),
  );

  const log = fileLog(path.join(root, "controller.log"), env);
  const controller = await steps.run("controller", async () =>
    stack.use(
      await startController({
        db: database.db,
        listenConnection: database.listenConnection,
        log,
        ...serving,
        pageDirectory,
        config: { ...configFrom(env), version: VERSION },
      }),
    ),
  );
  steps.note(controller.url);

  const url = ownUrl(controller.url);
  const client = createClient({
    baseUrl: url,
    credential: await keepContext(env, { url, ca: authority }, database.replaceToken),
  });
  keepTrust(root, authority);
  const agent = await steps.run("node", async () =>
    stack.use(await startLocalAgent({ client, root, env, steps, signal: ending })),
  );
  void agent.ended.then((how) =>
    failed.abort(
      new Failure("agent_ended", `the agent ended by itself with ${how}: see ${path.join(root, "agent.log")}`),
    ),
  );
  steps.note(describe(agent.node));

  const exitCode = await runFirstJob({
    client,
    steps,
    clock: systemClock,
    signal: ending,
    directory: checkout,
    isPatient: options.once === true,
  });
  await showScenes({ root, steps, signal: ending, stack });
  await stay({ client, steps, began, isStaying: options.once !== true, signal: ending });
  if (failed.signal.aborted) throw failed.signal.reason;
  steps.line("Stopping …");
  await stack.disposeAsync();
  steps.line("Stopped. Nothing is left running.");
  return options.once === true ? exitCode : 0;
}

type Stay = {
  readonly client: Client;
  readonly steps: Steps;
  readonly began: number;
  readonly isStaying: boolean;
  readonly signal: AbortSignal;
};

/** Says that all is ready and what can be done now, then waits for the end. */
async function stay({ client, steps, began, isStaying, signal }: Stay): Promise<void> {
  steps.line();
  if (signal.aborted) return;
  const seconds = ((systemClock.monotonicMs() - began) / 1000).toFixed(1);
  steps.line(`Ready in ${seconds} s.`);
  if (!isStaying) return;
  await showPage(client, steps);
  steps.line("In a second terminal:");
  for (const command of ["npx holdfast status", "npx holdfast job run -- uname -a", "npx holdfast job list"])
    steps.line(`  ${command}`);
  steps.line("Ctrl-C stops everything; the data stays.");
  await aborted(signal);
}

/** A link is a secret: it is shown to a person on a terminal, never written into a file that a service's output goes to. */
async function showPage(client: Client, steps: Steps): Promise<void> {
  if (!process.stdout.isTTY)
    return steps.line(`The page is at ${client.baseUrl}; sign in with: npx holdfast login-link`);
  const link = await client.call("loginLinkCreate", { body: {} });
  steps.line("Open the page, signed in (works once, for 15 minutes; npx holdfast login-link makes another):");
  steps.line(`  ${new URL(link.path, client.baseUrl).href}`);
}

const checkout = fileURLToPath(new URL("../..", import.meta.url));

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
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
