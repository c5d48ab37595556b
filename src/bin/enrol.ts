// SPDX-License-Identifier: Apache-2.0
// `holdfast enrol`: what the bootstrap script runs once the files are there. Pairs this machine, or finds that it is paired,
// and tells in one line; with --leave the controller is told that the node was uninstalled. Hidden: people run the script.

import { createClient } from "../client/client.ts";
import { loadAgentConfig } from "../enrol/agent-config.ts";
import { finishPairing, pair } from "../enrol/enrol.ts";
import { nodeDirectory, loadCredential } from "../enrol/node-key.ts";
import { isStillPaired, requireClock } from "../enrol/reach.ts";
import { systemClock } from "../std/clock.ts";
import { Failure } from "../std/errors.ts";
import { makeDirectory } from "../std/files.ts";
import { systemRandom } from "../std/random.ts";
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
  const known = loadAgentConfig(root);
  await requireClock(url, systemClock);
  if (known !== undefined && known.controllerUrl === url && (await isStillPaired(root, url)))
    return `paired already, as ${known.name} (${known.nodeId}); the code was not used`;
  if (code === undefined) throw new Failure("secret_missing", "the pairing code is read from standard input");
  const paired = await pair({ client: createClient({ baseUrl: url }), code, root, random: systemRandom });
  return `paired as ${paired.name} (${paired.nodeId}) with ${paired.organisationName}`;
}

async function leave(root: string): Promise<string> {
  const config = loadAgentConfig(root);
  const credential = loadCredential(root);
  if (config === undefined || credential === undefined) return "this machine is not paired: there is nobody to tell";
  await createClient({ baseUrl: config.controllerUrl, credential }).call("nodeLeave", {}, { timeoutMs: 10_000 });
  return `the controller was told that ${config.name} is uninstalled; its jobs go back to the queue`;
}
