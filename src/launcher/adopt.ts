// SPDX-License-Identifier: Apache-2.0
// What became of a launch, from its directory and the processes of this machine. It changes nothing. Rule: nothing is called
// interrupted while something of it may still run.

import { Failure, messageOf } from "../std/errors.ts";
import { bootId, type Identity, isAlive } from "../std/process.ts";
import type { Exit } from "./exit.ts";
import type { ShimIdentity } from "./identity.ts";
import { hasDirectory, readExit, readIdentity, readSpec } from "./launch-files.ts";
import type { LaunchSpec } from "./spec.ts";
import { findSurvivors, type Survivor, type Trace } from "./survivors.ts";

export type Launch = {
  readonly launchId: string;
  readonly directory: string;
  readonly spec: LaunchSpec;
  /** Of the shim. */
  readonly identity: Identity;
  /** The path of the cgroup that the job is born in; undefined where there is none: spec.cgroup says why. */
  readonly cgroup: string | undefined;
};

export type Adopted = { readonly launchId: string; readonly spec: LaunchSpec | undefined } & (
  | { readonly kind: "alive"; readonly launch: Launch }
  | { readonly kind: "ended"; readonly exit: Exclude<Exit, { kind: "not-started" }> }
  /** Proved: its gate was never opened, or its agent died before. */
  | { readonly kind: "not-started" }
  /** Its shim was killed and something of it still runs. Watching or stopping it ends that. */
  | { readonly kind: "remains"; readonly launch: Launch; readonly survivors: readonly Survivor[] }
  /** It may have run, nobody saw the end, and nothing of it runs. */
  | { readonly kind: "interrupted"; readonly reason: "gone" | "other-boot" }
  /** A file of the launch is not what the shim or we write. */
  | (Unclear & { readonly kind: "damaged"; readonly problem: string })
  /** There is no launch directory. */
  | (Unclear & { readonly kind: "missing" })
);

/** Nobody will write how it ended. `survivors`: who of it still runs, its shim too; until it is empty it has not ended. */
export type Unclear = { readonly trace: UnclearLaunch; readonly survivors: readonly Survivor[] };
/** Enough to wait for its end and to bring it about. */
export type UnclearLaunch = Trace & { readonly directory: string };

type Known = {
  readonly directory: string;
  readonly launchId: string;
  /** Of its shim, as it was remembered elsewhere. */
  readonly recorded: Identity | undefined;
  spec: LaunchSpec | undefined;
  shim: ShimIdentity | undefined;
};

/** recorded: the shim's identity as the boundary has it. Throws launch_newer and launch_failed; damage is a value. */
export async function adoptLaunch(directory: string, launchId: string, recorded?: Identity): Promise<Adopted> {
  const known: Known = { directory, launchId, recorded, spec: undefined, shim: undefined };
  if (!hasDirectory(directory)) return { kind: "missing", launchId, spec: undefined, ...unclear(known) };
  try {
    known.spec = await readSpec(directory);
    known.shim = await readIdentity(directory);
    return await matched(known);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "launch_damaged") throw error;
    return (await endedInSpite(known)) ?? damagedOf(known, messageOf(error));
  }
}

/** The exit file tells how it ended, whatever became of the other files; undefined when it is not there, or is damaged itself. */
async function endedInSpite({ directory, launchId, spec }: Known): Promise<Adopted | undefined> {
  try {
    const exit = await readExit(directory);
    if (exit === undefined) return undefined;
    return exit.kind === "not-started"
      ? { kind: "not-started", launchId, spec }
      : { kind: "ended", launchId, spec, exit };
  } catch (error) {
    if (error instanceof Failure && error.code === "launch_damaged") return undefined;
    throw error;
  }
}

async function matched(known: Known): Promise<Adopted> {
  const { directory, launchId, spec, shim } = known;
  // Looked at before the exit file, which the shim writes as its last act.
  const alive = shim !== undefined && isAlive(shim.identity);
  const exit = await readExit(directory);
  if (exit?.kind === "not-started") return { kind: "not-started", launchId, spec };
  if (exit !== undefined) return { kind: "ended", launchId, spec, exit };
  // The shim makes its identity durable before it looks at the gate.
  if (shim === undefined) return { kind: "not-started", launchId, spec };
  const { identity } = shim;
  // The spec was durable before the shim was there.
  if (spec === undefined) return damagedOf(known, `${directory} has lost its spec.json`);
  const launch: Launch = { launchId, directory, spec, identity, cgroup: cgroupOf(known) };
  if (alive) return { kind: "alive", launchId, spec, launch };
  const survivors = findSurvivors(launch);
  if (survivors.length > 0) return { kind: "remains", launchId, spec, launch, survivors };
  return { kind: "interrupted", launchId, spec, reason: identity.bootId === bootId() ? "gone" : "other-boot" };
}

function damagedOf(known: Known, problem: string): Adopted {
  const { launchId, spec } = known;
  return { kind: "damaged", launchId, spec, problem, ...unclear(known) };
}

function unclear(known: Known): Unclear {
  const { directory, launchId, spec, shim, recorded } = known;
  const trace = { directory, launchId, spec, identity: shim?.identity ?? recorded, cgroup: cgroupOf(known) };
  return { trace, survivors: allOf(trace) };
}

/** What runs of a launch, its shim with it. */
export function allOf(trace: Trace): readonly Survivor[] {
  const { identity } = trace;
  const shim = identity !== undefined && isAlive(identity) ? [survivorOfShim(identity)] : [];
  return [...findSurvivors(trace), ...shim];
}

export function survivorOfShim(identity: Identity): Survivor {
  return { pid: identity.pid, name: "holdfast-shim", identity, isProved: true };
}

export function cgroupOf({ spec, shim }: Pick<Known, "spec" | "shim">): string | undefined {
  if (shim?.isInCgroup !== true) return undefined;
  return shim.cgroup ?? (spec?.cgroup?.kind === "own" ? spec.cgroup.path : undefined);
}
