// SPDX-License-Identifier: Apache-2.0
// The one place that starts a process. Two steps: prepare (directory, shim, identity), then openGate: between them the caller
// stores that it starts. Rules: one launch directory, one start; the job lives and ends without us; its exit file tells how.

import { existsSync } from "node:fs";
import path from "node:path";
import { assert } from "../std/assert.ts";
import type { Clock } from "../std/clock.ts";
import { Failure } from "../std/errors.ts";
import { type Adopted, adoptLaunch, cgroupOf, type Launch, type UnclearLaunch } from "./adopt.ts";
import { cgroupDirectory, createCgroup, removeCgroup } from "./cgroup.ts";
import type { Ending } from "./exit.ts";
import type { ShimIdentity } from "./identity.ts";
import { type LaunchService, reachShim, whyNoService } from "./launch-socket.ts";
import * as files from "./launch-files.ts";
import { DEFAULT_CEILINGS, type Limits, narrowLimits } from "./limits.ts";
import { launchIdOf, type Purpose } from "./purpose.ts";
import { openToGroup } from "./errand.ts";
import { giveGroup, type Helper } from "./share.ts";
import { checkShim, type Shim, spawnShim } from "./shim.ts";
import {
  type Account,
  encodeParams,
  type Environment,
  environmentOf,
  type LaunchSpec,
  MARK_VARIABLE,
  markOf,
  type OutputMode,
  specFaults,
} from "./spec.ts";
import type { Identity } from "../std/process.ts";
import { endUnclear, STOP_GRACE_MS, type Stopped, stopLaunch, waitEmpty } from "./stop.ts";
import type { Survivor } from "./survivors.ts";
import { lookUntil, waitEnding, withinLimit } from "./watch.ts";

export { currentAccount, jobAccount } from "./account.ts";
export { type Adopted, type Launch, type Unclear, type UnclearLaunch } from "./adopt.ts";
export { describeEnding, type Ending, type ExecStage, type Exit, signalName } from "./exit.ts";
export { type LaunchService } from "./launch-socket.ts";
export { type LaunchPaths, pathsIn } from "./launch-files.ts";
export { type BreachedLimit, describeBreach, type Limits } from "./limits.ts";
export { launchIdOf, type Purpose } from "./purpose.ts";
export { shimPathFor } from "./shim.ts";
export { type Account, type Environment, type LaunchSpec, type OutputMode } from "./spec.ts";
export { type Stopped } from "./stop.ts";
export { type Survivor } from "./survivors.ts";

const IDENTITY_WAIT_MS = 10_000;
const IDENTITY_POLL_MS = 20;

export type LaunchRequest = {
  readonly purpose: Purpose;
  readonly argv: readonly string[];
  /** Absolute and existing; absent: an own empty folder, pathsIn(directory).work. */
  readonly workingDirectory?: string;
  /** Added to PATH, HOME, USER, LOGNAME and LANG, or in their place. */
  readonly environment: Environment;
  /** Narrows the launcher's ceilings; what would widen one is the ceiling. */
  readonly limits?: Limits;
  /** Absent: files. */
  readonly output?: OutputMode;
  /** Exactly for a signed job: the bytes that were signed. */
  readonly signed?: Uint8Array;
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

export type LauncherOptions = {
  /** The agent's root; launches lie in <root>/launches. Absolute. */
  readonly root: string;
  readonly shimPath: string;
  readonly account: Account;
  /** Has systemd start the shims; absent: this process does. */
  readonly service?: LaunchService;
  readonly clock: Clock;
  /** What no launch may pass; absent: 1 GiB for each output. */
  readonly ceilings?: Limits;
};

export class Launcher {
  readonly #options: LauncherOptions;

  private constructor(options: LauncherOptions) {
    this.#options = options;
  }

  /** Creates <root>/launches where it is missing. Throws shim_unusable, disk_full, directory_unwritable, launch_failed. */
  static async open(options: LauncherOptions): Promise<Launcher> {
    assert(path.isAbsolute(options.root), "the launch root is an absolute path");
    const { root, shimPath, service } = options;
    checkShim(shimPath);
    if (service !== undefined && !existsSync(service.socket)) throw whyNoService(service);
    await files.openLaunches(root, helperOf(options));
    return new Launcher(options);
  }

  /** <root>/launches/<launchId>. */
  directoryOf(launchId: string): string {
    assert(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,219}$/.test(launchId), `"${launchId}" is not a launch id`);
    return this.#within(launchId);
  }

  #within(launchId: string): string {
    return path.join(files.launchesIn(this.#options.root), launchId);
  }

  /** Everything up to the gate. Throws launch_invalid (all faults at once), disk_full, directory_unwritable, launch_failed, shim_unusable. */
  async prepare(request: LaunchRequest): Promise<Prepared> {
    const { clock, service, ceilings = DEFAULT_CEILINGS } = this.#options;
    const account = service?.account ?? this.#options.account;
    const launchId = launchIdOf(request.purpose);
    const spec: LaunchSpec = {
      launchId,
      purpose: request.purpose,
      argv: request.argv,
      workingDirectory: request.workingDirectory ?? files.pathsIn(this.#within(launchId)).work,
      limits: narrowLimits(ceilings, request.limits ?? {}),
      createdAtMs: clock.now(),
      ...(request.output === undefined ? {} : { output: request.output }),
      ...(request.signed === undefined ? {} : { signed: Buffer.from(request.signed).toString("base64") }),
    };
    const environment = { ...environmentOf(account, request.environment), [MARK_VARIABLE]: markOf(spec) };
    // A limit that is no number must be named, not narrowed away.
    const faults = specFaults({ ...spec, limits: request.limits ?? {} }, environment);
    if (faults.length > 0)
      throw new Failure("launch_invalid", "this cannot be given to a process", { details: faults });
    const directory = this.directoryOf(launchId);
    let made: LaunchSpec = spec;
    const fill = (): files.LaunchContent => {
      if (service !== undefined) {
        const given = service.account === undefined ? {} : { account: service.account };
        return {
          spec,
          params: encodeParams(spec, environment, { cgroup: "own", account: given.account?.name }),
          ...given,
        };
      }
      const cgroup = createCgroup(launchId);
      made = { ...spec, cgroup };
      const place = cgroup.kind === "own" ? cgroupDirectory(cgroup.path) : undefined;
      return { spec: made, params: encodeParams(made, environment, { cgroup: place }) };
    };
    try {
      if (!(await files.createLaunch(directory, fill))) return { kind: "already-launched", launchId };
      const shim = await this.#startShim(directory).catch(async (error: unknown) => {
        await files.removeUnspawned(directory);
        throw error;
      });
      const launch = await this.#prepared(shim, directory, made);
      const abandon = async (): Promise<Ending> => {
        shim.closeGate();
        return (await this.waitEnding(launch)) ?? { kind: "lost" };
      };
      return { kind: "prepared", launch: { ...launch, openGate: shim.openGate, abandon } };
    } catch (error) {
      dropCgroup(made);
      throw error;
    }
  }

  #startShim(directory: string): Promise<Shim> {
    const { service, shimPath } = this.#options;
    return service === undefined ? spawnShim(shimPath, directory) : reachShim(service, directory);
  }

  async #prepared(shim: Shim, directory: string, spec: LaunchSpec): Promise<Launch> {
    const told = await this.#identity(shim, directory);
    if (!told.isInCgroup) dropCgroup(spec);
    return {
      launchId: spec.launchId,
      directory,
      spec,
      identity: told.identity,
      cgroup: cgroupOf({ spec, shim: told }),
    };
  }

  /** Lets a job of another account read a file that this account wrote for it. */
  async giveToJob(file: string): Promise<void> {
    const account = this.#options.service?.account;
    if (account !== undefined) await giveGroup(file, account, 0o640);
  }

  /** Where a job of this launcher leaves its result. */
  resultIn(directory: string): string {
    const { result, sharedResult } = files.pathsIn(directory);
    return this.#options.service?.account === undefined ? result : sharedResult;
  }

  /** The file in which a job of this launcher, or of an agent before it, left its result: readable now, whatever its mode was. */
  async findResult(directory: string): Promise<string> {
    const { result, sharedResult } = files.pathsIn(directory);
    if (!existsSync(sharedResult)) return result;
    if (!(await files.isReadable(sharedResult))) await helperOf(this.#options)?.open([sharedResult]);
    return sharedResult;
  }

  async #identity(shim: Shim, directory: string): Promise<ShimIdentity> {
    const { clock } = this.#options;
    const look = (): Promise<ShimIdentity | undefined> => files.readIdentity(directory);
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
  async waitEnding(launch: Launch, signal: AbortSignal = new AbortController().signal): Promise<Ending | undefined> {
    const ending = await waitEnding(launch, this.#options.clock, signal);
    if (ending !== undefined) dropCgroup(launch.spec);
    return ending;
  }

  /** SIGTERM, the grace, then SIGKILL to all of it, up to 3 times. Every outcome is a value. */
  async stop(launch: Launch, options: { readonly graceMs?: number } = {}): Promise<Stopped> {
    const stopped = await stopLaunch(launch, this.#options.clock, options.graceMs ?? STOP_GRACE_MS);
    if (stopped.kind !== "survived" && stopped.kind !== "refused") dropCgroup(launch.spec);
    return stopped;
  }

  /** Every launch that has a directory. None is left unlisted. */
  list(): Promise<readonly string[]> {
    return files.listLaunches(this.#options.root);
  }

  /** What became of a launch of an earlier life; an alive one can be watched and stopped like our own. Changes nothing.
   * recorded: the identity of its shim as the boundary has it, for a directory that does not tell. */
  adopt(launchId: string, recorded?: Identity): Promise<Adopted> {
    return adoptLaunch(this.directoryOf(launchId), launchId, recorded);
  }

  /** For a launch that cannot tell its end any more: true once nothing of it runs, false when the signal aborted first. */
  waitEmpty(launch: UnclearLaunch, signal: AbortSignal): Promise<boolean> {
    return waitEmpty(launch, this.#options.clock, signal);
  }

  /** Ends such a launch; who survived. */
  endUnclear(launch: UnclearLaunch, graceMs: number): Promise<readonly Survivor[]> {
    return endUnclear(launch, this.#options.clock, graceMs);
  }

  /** Removes all that is left of a launch, and with it the fence against a second start of the same purpose. Refused while any of it runs. */
  async remove(
    launchId: string,
  ): Promise<{ readonly kind: "removed" } | { readonly kind: "refused"; readonly reason: "alive" }> {
    const adopted = await this.adopt(launchId);
    const isEmpty = "survivors" in adopted ? adopted.survivors.length === 0 : true;
    if (adopted.kind === "alive" || !isEmpty) return { kind: "refused", reason: "alive" };
    // Before the directory, which alone knows its path.
    if (adopted.spec !== undefined) dropCgroup(adopted.spec);
    await files.removeDirectory(this.directoryOf(launchId), helperOf(this.#options));
    return { kind: "removed" };
  }
}

function helperOf({ service, clock }: LauncherOptions): Helper | undefined {
  if (service?.account === undefined) return undefined;
  return { account: service.account, open: (places) => openToGroup({ service, clock }, places) };
}

/** Only an empty one goes; another stays and is tried again when the launch is removed. */
function dropCgroup({ cgroup }: LaunchSpec): void {
  if (cgroup?.kind === "own") removeCgroup(cgroup.path);
}
