// SPDX-License-Identifier: Apache-2.0
// A command that runs as the account of jobs, for the agent: what a job left in modes that shut its group out only that account
// can open. Rule: a launch directory of its own, removed in the end; it is never an attempt of anything.

import fs from "node:fs/promises";
import path from "node:path";
import type { Clock } from "../std/clock.ts";
import { codeOf } from "../std/errors.ts";
import { type LaunchService, reachShim } from "./launch-socket.ts";
import { letPass } from "./share.ts";
import { encodeParams, environmentOf } from "./spec.ts";
import { lookUntil, withinLimit } from "./watch.ts";

const ERRAND_PREFIX = ".errand-";
const ERRAND_WAIT_MS = 30_000;
const LOOK_MS = 50;

type Errand = { readonly service: LaunchService; readonly clock: Clock };

/** Makes what the job left in these places readable and removable for its group, and so for the agent. */
export function openToGroup(options: Errand, places: readonly string[]): Promise<void> {
  return errand(options, ["chmod", "-R", "u+rwX,g+rwX,-t", "--", ...places]);
}

/** Runs a command as the jobs' account, from a directory of its own; how it ends does not matter, what it changed does. */
async function errand({ service, clock }: Errand, argv: readonly string[]): Promise<void> {
  const { account } = service;
  const [place] = argv.slice(-1);
  if (account === undefined || place === undefined) return;
  const launch = path.dirname(place);
  const directory = path.join(path.dirname(launch), `${ERRAND_PREFIX}${path.basename(launch)}`);
  await fs.rm(directory, { recursive: true, force: true });
  try {
    await fs.mkdir(directory, { mode: 0o700 });
    await letPass(directory, account);
    const spec = { argv, workingDirectory: "/", limits: {} };
    const params = encodeParams(spec, environmentOf(account, {}), { cgroup: "own", account: account.name });
    await fs.writeFile(path.join(directory, "params"), params, { mode: 0o600 });
    const shim = await reachShim(service, directory);
    const appears = (name: string, signal: AbortSignal): Promise<true | undefined> =>
      lookUntil({
        watched: directory,
        periodMs: LOOK_MS,
        look: () => exists(path.join(directory, name)),
        clock,
        signal,
      });
    await withinLimit(clock, ERRAND_WAIT_MS, async (limit) => {
      void shim.ended.then(() => limit.abort());
      return (await appears("identity", limit.signal)) === true && (await shim.openGate());
    });
    await withinLimit(clock, ERRAND_WAIT_MS, ({ signal }) => appears("exit", signal));
  } finally {
    await fs.rm(directory, { recursive: true, force: true });
  }
}

async function exists(file: string): Promise<true | undefined> {
  try {
    await fs.access(file);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
