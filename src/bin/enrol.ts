// SPDX-License-Identifier: Apache-2.0
// `holdfast enrol`: what the bootstrap script runs once the files are there. Pairs this machine, or finds that it is paired,
// and tells in one line; with --leave the controller is told that the node was uninstalled. Hidden: people run the script.

import { createClient } from "../client/client.ts";
import { type AgentConfig, agentConfigFile, encodeAgentConfig, loadAgentConfig } from "../enrol/agent-config.ts";
import { finishPairing, pair } from "../enrol/enrol.ts";
import { loadCredential, loadOrMakeNodeKey, nodeDirectory } from "../enrol/node-key.ts";
import { writePrivateFile } from "../enrol/private-file.ts";
import { requireClock, whyNotPaired } from "../enrol/reach.ts";
import { systemClock } from "../std/clock.ts";
import { Failure, messageOf } from "../std/errors.ts";
import { makeDirectory } from "../std/files.ts";
import { systemRandom } from "../std/random.ts";
import { launchList, launchStop } from "./launch.ts";
import { type Environment, rootFrom } from "./settings.ts";
import { trustController } from "./tls.ts";

export type EnrolOptions = {
  readonly root?: string;
  /** The controller. */
  readonly join?: string;
  /** Pairing code, one line. */
  readonly code?: string;
  readonly leave?: boolean;
};

export async function enrolMachine(options: EnrolOptions, env: Environment): Promise<string> {
  const root = rootFrom(env, options.root);
  makeDirectory(root, 0o755);
  makeDirectory(nodeDirectory(root), 0o700);
  finishPairing(root);
  trustController(root);
  return options.leave === true ? leave(root) : join(root, options);
}

async function join(root: string, { join: url, code }: EnrolOptions): Promise<string> {
  if (url === undefined) throw new Failure("usage", "enrol needs --join URL");
  const known = presentPairing(root);
  await requireClock(url, systemClock);
  const refusal = known.kind === "paired" ? await whyNotPaired(root, url) : known.why;
  if (known.kind === "paired" && refusal === undefined)
    return `paired already, as ${keepAddress(root, known.config, url)}`;
  if (code === undefined) throw refusal;
  const paired = await pair({ client: createClient({ baseUrl: url }), code, root, random: systemRandom });
  return `paired as ${paired.name} (${paired.nodeId}) with ${paired.organisationName}`;
}

type Present =
  | { readonly kind: "paired"; readonly config: AgentConfig }
  | { readonly kind: "none"; readonly why: Failure };

/** Files that are damaged are no pairing: a new code makes them anew. */
function presentPairing(root: string): Present {
  try {
    const config = loadAgentConfig(root);
    if (config !== undefined && loadCredential(root) !== undefined) {
      loadOrMakeNodeKey(nodeDirectory(root));
      return { kind: "paired", config };
    }
    return { kind: "none", why: new Failure("not_paired", "this machine is not paired, and there is no pairing code") };
  } catch (error) {
    if (error instanceof Failure) return { kind: "none", why: error };
    throw error;
  }
}

/** The controller may have another address by now. */
function keepAddress(root: string, config: AgentConfig, url: string): string {
  if (config.controllerUrl !== url)
    writePrivateFile(agentConfigFile(root), encodeAgentConfig({ ...config, controllerUrl: url }));
  return `${config.name} (${config.nodeId})`;
}

async function leave(root: string): Promise<string> {
  const config = loadAgentConfig(root);
  const credential = loadCredential(root);
  if (config === undefined || credential === undefined) return "this machine is not paired: there is nobody to tell";
  const stopped = await stopLaunches(root);
  await createClient({ baseUrl: config.controllerUrl, credential }).call("nodeLeave", {}, { timeoutMs: 10_000 });
  return [...stopped, `the controller was told that ${config.name} is uninstalled; its jobs go back to the queue`].join(
    "\n",
  );
}

/** Nobody looks after them from here on, and the controller gives the jobs to others. */
async function stopLaunches(root: string): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const { launchId, state } of await launchList({ root }, {})) {
    if (state !== "running" && state !== "remains") continue;
    try {
      lines.push(`${launchId}: ${(await launchStop({ root, launchId }, {})).text}`);
    } catch (error) {
      lines.push(`${launchId}: ${messageOf(error)}`);
    }
  }
  return lines;
}
