// SPDX-License-Identifier: Apache-2.0
// The one place that starts a process. Two steps: prepare (directory, shim, identity), then openGate: between them the caller
// stores that it starts. Rules: one launch directory, one start; the job lives and ends without us; its exit file tells how.

import path from "node:path";
import { assert } from "../std/assert.ts";
import type { Clock } from "../std/clock.ts";
import { Failure, messageOf } from "../std/errors.ts";
import { bootId, type Identity, isAlive } from "../std/process.ts";
import type { Ending, Exit } from "./exit.ts";
import * as files from "./launch-files.ts";
import { checkShim, type Shim, spawnShim } from "./shim.ts";
import {
  type Account,
  type Environment,
  environmentOf,
  type LaunchSpec,
  launchIdOf,
  type Limits,
  type Purpose,
  specFaults,
} from "./spec.ts";
import { STOP_GRACE_MS, type Stopped, stopLaunch } from "./stop.ts";
import { lookUntil, waitEnding, withinLimit } from "./watch.ts";

export { currentAccount } from "./account.ts";
export { describeEnding, type Ending, type ExecStage, type Exit, signalName } from "./exit.ts";
export { type LaunchPaths, pathsIn } from "./launch-files.ts";
export { shimPathFor } from "./shim.ts";
export { type Account, type Environment, type LaunchSpec, launchIdOf, type Limits, type Purpose } from "./spec.ts";
export { type Stopped } from "./stop.ts";

const IDENTITY_WAIT_MS = 10_000;
const IDENTITY_POLL_MS = 20;

export type LaunchRequest = {
  readonly purpose: Purpose;
  readonly argv: readonly string[];
  /** Absolute and existing; absent: an own empty folder, pathsIn(directory).work. */
  readonly workingDirectory?: string;
  /** Added to PATH, HOME, USER, LOGNAME and LANG, or in their place. */
  readonly environment: Environment;
  readonly limits?: Limits;
};

export type Launch = {
  readonly launchId: string;
  readonly directory: string;
  readonly spec: LaunchSpec;
  /** Of the shim. */
  readonly identity: Identity;
};

export type PreparedLaunch = Launch & {
  /** Lets the job run, once. False when the shim is gone already; waitEnding tells the rest either way. */
  readonly openGate: () => Promise<boolean>;
  /** Gives up before the gate: resolves with the ending, not-started. */
  readonly abandon: () => Promise<Ending>;
};

export type Prepared =
  | { readonly kind: "prepared"; readonly launch: PreparedLaunch }
  /** This purpose was launched before, in this life or an earlier one: adopt(launchId) tells what became of it. */
  | { readonly kind: "already-launched"; readonly launchId: string };

export type Adopted = { readonly launchId: string; readonly spec: LaunchSpec | undefined } & (
  | { readonly kind: "alive"; readonly launch: Launch }
  | { readonly kind: "ended"; readonly exit: Exclude<Exit, { kind: "not-started" }> }
  /** Proved: its gate was never opened, or its agent died before. */
  | { readonly kind: "not-started" }
  /** It may have run; nobody saw the end. */
  | { readonly kind: "interrupted"; readonly reason: "gone" | "other-boot" }
  /** A file of the launch is not what the shim or we write. */
  | { readonly kind: "damaged"; readonly problem: string }
);

export type LauncherOptions = {
  /** The agent's root; launches lie in <root>/launches. Absolute. */
  readonly root: string;
  readonly shimPath: string;
  readonly account: Account;
  readonly clock: Clock;
};

export class Launcher {
  readonly #options: LauncherOptions;

  private constructor(options: LauncherOptions) {
    this.#options = options;
  }

  /** Creates <root>/launches where it is missing. Throws shim_unusable, disk_full, directory_unwritable, launch_failed. */
  static async open(options: LauncherOptions): Promise<Launcher> {
    assert(path.isAbsolute(options.root), "the launch root is an absolute path");
    checkShim(options.shimPath);
    await files.openLaunches(options.root);
    return new Launcher(options);
  }

  /** <root>/launches/<launchId>. */
  directoryOf(launchId: string): string {
    assert(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$/.test(launchId), `"${launchId}" is not a launch id`);
    return path.join(files.launchesIn(this.#options.root), launchId);
  }

  /** Everything up to the gate. Throws launch_invalid (all faults at once), disk_full, directory_unwritable, launch_failed, shim_unusable. */
  async prepare(request: LaunchRequest): Promise<Prepared> {
    const { account, clock, shimPath } = this.#options;
    const launchId = launchIdOf(request.purpose);
    const directory = this.directoryOf(launchId);
    const spec: LaunchSpec = {
      launchId,
      purpose: request.purpose,
      argv: request.argv,
      workingDirectory: request.workingDirectory ?? files.pathsIn(directory).work,
      limits: request.limits ?? {},
      createdAtMs: clock.now(),
    };
    const environment = environmentOf(account, request.environment);
    const faults = specFaults(spec, environment);
    if (faults.length > 0)
      throw new Failure("launch_invalid", "this cannot be given to a process", { details: faults });
    if (!(await files.createLaunch(directory, spec, environment))) return { kind: "already-launched", launchId };
    const shim = await spawnShim(shimPath, directory).catch(async (error: unknown) => {
      await files.removeUnspawned(directory);
      throw error;
    });
    const launch: Launch = { launchId, directory, spec, identity: await this.#identity(shim, directory) };
    const abandon = async (): Promise<Ending> => {
      shim.closeGate();
      return (await this.waitEnding(launch)) ?? { kind: "lost" };
    };
    return { kind: "prepared", launch: { ...launch, openGate: shim.openGate, abandon } };
  }

  async #identity(shim: Shim, directory: string): Promise<Identity> {
    const { clock } = this.#options;
    const look = (): Promise<Identity | undefined> => files.readIdentity(directory);
    let problem = `did not answer within ${IDENTITY_WAIT_MS / 1000} s`;
    const found = await withinLimit(clock, IDENTITY_WAIT_MS, (limit) => {
      void shim.ended.then((status) => {
        problem = status;
        limit.abort();
      });
      return lookUntil({ watched: directory, periodMs: IDENTITY_POLL_MS, look, clock, signal: limit.signal });
    });
    if (found !== undefined) return found;
    // Closed and never opened: whatever the shim still does, it runs nothing.
    shim.closeGate();
    throw new Failure("launch_failed", `the shim for ${directory} ${problem}; nothing was started`);
  }

  /** Resolves with the ending of a launch, ours or adopted; undefined only when the signal aborted first. */
  waitEnding(launch: Launch, signal: AbortSignal = new AbortController().signal): Promise<Ending | undefined> {
    return waitEnding(launch, this.#options.clock, signal);
  }

  /** SIGTERM, the grace, then SIGKILL to all of it, up to 3 times. Every outcome is a value. */
  stop(launch: Launch, options: { readonly graceMs?: number } = {}): Promise<Stopped> {
    return stopLaunch(launch, this.#options.clock, options.graceMs ?? STOP_GRACE_MS);
  }

  /** Every launch that has a directory. None is left unlisted. */
  list(): Promise<readonly string[]> {
    return files.listLaunches(this.#options.root);
  }

  /** What became of a launch of an earlier life; an alive one can be watched and stopped like our own. */
  async adopt(launchId: string): Promise<Adopted> {
    const directory = this.directoryOf(launchId);
    let spec: LaunchSpec | undefined;
    try {
      spec = await files.readSpec(directory);
      const identity = await files.readIdentity(directory);
      // Looked at before the exit file, which the shim writes as its last act.
      const alive = identity !== undefined && isAlive(identity);
      const exit = await files.readExit(directory);
      if (exit?.kind === "not-started") return { kind: "not-started", launchId, spec };
      if (exit !== undefined) return { kind: "ended", launchId, spec, exit };
      // The shim makes its identity durable before it looks at the gate.
      if (identity === undefined) return { kind: "not-started", launchId, spec };
      if (alive && spec !== undefined)
        return { kind: "alive", launchId, spec, launch: { launchId, directory, spec, identity } };
      return { kind: "interrupted", launchId, spec, reason: identity.bootId === bootId() ? "gone" : "other-boot" };
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== "launch_damaged") throw error;
      return { kind: "damaged", launchId, spec, problem: messageOf(error) };
    }
  }

  /** Removes all that is left of a launch, and with it the fence against a second start of the same purpose. Refused while it lives. */
  async remove(
    launchId: string,
  ): Promise<{ readonly kind: "removed" } | { readonly kind: "refused"; readonly reason: "alive" }> {
    const adopted = await this.adopt(launchId);
    if (adopted.kind === "alive") return { kind: "refused", reason: "alive" };
    await files.removeDirectory(this.directoryOf(launchId));
    return { kind: "removed" };
  }
}
