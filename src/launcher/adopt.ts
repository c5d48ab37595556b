// SPDX-License-Identifier: Apache-2.0
// What became of a launch, from its directory and the processes of this machine. It changes nothing. Rule: nothing is called
// interrupted while something of it may still run.

import { Failure, messageOf } from "../std/errors.ts";
import { bootId, type Identity, isAlive } from "../std/process.ts";
import type { Exit } from "./exit.ts";
import type { ShimIdentity } from "./identity.ts";
import { readExit, readIdentity, readSpec } from "./launch-files.ts";
import type { LaunchSpec } from "./spec.ts";
import { findSurvivors, type Survivor } from "./survivors.ts";

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
  /** A file of the launch is not what the shim or we write. `survivors` is who was still found. */
  | { readonly kind: "damaged"; readonly problem: string; readonly survivors: readonly Survivor[] }
);

type Known = { spec: LaunchSpec | undefined; shim: ShimIdentity | undefined };

/** Throws launch_newer and launch_failed; damage is a value. */
export async function adoptLaunch(directory: string, launchId: string): Promise<Adopted> {
  const known: Known = { spec: undefined, shim: undefined };
  try {
    known.spec = await readSpec(directory);
    known.shim = await readIdentity(directory);
    return await matched(directory, launchId, known);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "launch_damaged") throw error;
    return damagedOf(launchId, known, messageOf(error));
  }
}

async function matched(directory: string, launchId: string, known: Known): Promise<Adopted> {
  const { spec, shim } = known;
  // Looked at before the exit file, which the shim writes as its last act.
  const alive = shim !== undefined && isAlive(shim.identity);
  const exit = await readExit(directory);
  if (exit?.kind === "not-started") return { kind: "not-started", launchId, spec };
  if (exit !== undefined) return { kind: "ended", launchId, spec, exit };
  // The shim makes its identity durable before it looks at the gate.
  if (shim === undefined) return { kind: "not-started", launchId, spec };
  const { identity } = shim;
  // The spec was durable before the shim was there.
  if (spec === undefined) return damagedOf(launchId, known, `${directory} has lost its spec.json`);
  const launch: Launch = { launchId, directory, spec, identity, cgroup: cgroupOf(known) };
  if (alive) return { kind: "alive", launchId, spec, launch };
  const survivors = findSurvivors(launch);
  if (survivors.length > 0) return { kind: "remains", launchId, spec, launch, survivors };
  return { kind: "interrupted", launchId, spec, reason: identity.bootId === bootId() ? "gone" : "other-boot" };
}

function damagedOf(launchId: string, known: Known, problem: string): Adopted {
  const { spec, shim } = known;
  const survivors = findSurvivors({ spec, identity: shim?.identity, cgroup: cgroupOf(known) });
  return { kind: "damaged", launchId, spec, problem, survivors };
}

function cgroupOf({ spec, shim }: Known): string | undefined {
  return shim?.isInCgroup === true && spec?.cgroup?.kind === "own" ? spec.cgroup.path : undefined;
}
