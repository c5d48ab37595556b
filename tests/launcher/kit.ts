// SPDX-License-Identifier: Apache-2.0
// Real launches for the launcher's tests: a root of its own per test file, and short ways to run and to wait. No sleeps: what a
// job does is awaited through files that appear.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import {
  currentAccount,
  type Ending,
  type Environment,
  Launcher,
  type Limits,
  type OutputMode,
  type PreparedLaunch,
  pathsIn,
  type Purpose,
  shimPathFor,
} from "../../src/launcher/launcher.ts";
import { removeCgroup } from "../../src/launcher/cgroup.ts";
import { listLaunches } from "../../src/launcher/launch-files.ts";
import { lookUntil } from "../../src/launcher/watch.ts";
import { systemClock } from "../../src/std/clock.ts";
import { idMaker } from "../../src/std/ids.ts";
import { systemRandom } from "../../src/std/random.ts";
import { codeOf } from "../../src/std/errors.ts";

const makeId = idMaker(systemClock, systemRandom);

export const shimPath = process.env["HOLDFAST_TEST_SHIM"] ?? shimPathFor(process.arch);

export async function openLauncher(root: string): Promise<Launcher> {
  return await Launcher.open({ root, shimPath, account: currentAccount(), clock: systemClock });
}

export async function makeRoot(name = "holdfast launcher "): Promise<string> {
  return await fs.mkdtemp(path.join(os.tmpdir(), name));
}

/** With the cgroups of its launches, which only their directories know. */
export async function removeRoot(root: string): Promise<void> {
  for (const launchId of await listLaunches(root)) {
    const text = await fs.readFile(path.join(root, "launches", launchId, "spec.json"), "utf8").catch(() => "");
    const cgroup = /"cgroup":\{"kind":"own","path":"([^"]+)"/.exec(text)?.[1];
    if (cgroup !== undefined) removeCgroup(cgroup);
  }
  await fs.rm(root, { recursive: true, force: true });
}

export function purpose(epoch = 1): Purpose {
  return { kind: "attempt", jobId: makeId("job"), epoch: String(epoch) };
}

export type JobOptions = {
  readonly environment?: Environment;
  readonly limits?: Limits;
  readonly workingDirectory?: string;
  readonly output?: OutputMode;
};

export async function prepare(
  launcher: Launcher,
  argv: readonly string[],
  options: JobOptions = {},
): Promise<PreparedLaunch> {
  const prepared = await launcher.prepare({ purpose: purpose(), argv, environment: {}, ...options });
  assert.equal(prepared.kind, "prepared");
  assert(prepared.kind === "prepared");
  return prepared.launch;
}

/** Started: prepared and through the gate. */
export async function start(
  launcher: Launcher,
  argv: readonly string[],
  options: JobOptions = {},
): Promise<PreparedLaunch> {
  const launch = await prepare(launcher, argv, options);
  assert.equal(await launch.openGate(), true);
  return launch;
}

export type Ran = {
  readonly ending: Ending;
  readonly stdout: string;
  readonly stderr: string;
  readonly launch: PreparedLaunch;
};

export async function run(launcher: Launcher, argv: readonly string[], options: JobOptions = {}): Promise<Ran> {
  const launch = await start(launcher, argv, options);
  const ending = await endingOf(launcher, launch);
  const { stdout, stderr } = pathsIn(launch.directory);
  return { ending, launch, stdout: await fs.readFile(stdout, "utf8"), stderr: await fs.readFile(stderr, "utf8") };
}

export async function endingOf(launcher: Launcher, launch: PreparedLaunch): Promise<Ending> {
  const ending = await launcher.waitEnding(launch, AbortSignal.timeout(20_000));
  assert(ending !== undefined, "the launch ended within 20 s");
  return ending;
}

/** Looks every few milliseconds, for at most 20 s. */
export async function eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const signal = AbortSignal.timeout(20_000);
  const found = await lookUntil({ watched: "/nonexistent", periodMs: 5, look, clock: systemClock, signal });
  assert(found !== undefined, `${what} within 20 s`);
  return found;
}

/** The content of a file once it ends with a line feed. */
export function lineFrom(file: string): Promise<string> {
  return eventually(`a line in ${file}`, async () => {
    try {
      const text = await fs.readFile(file, "utf8");
      return text.endsWith("\n") ? text.trim() : undefined;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
  });
}
