// SPDX-License-Identifier: Apache-2.0
// The launcher's rules over a simulated process table: a directory made exclusively, a shim behind a gate, an exit file as its
// last act, a job that dies with its shim though something of it may remain. Every job that runs is told to the world.

import type { Found } from "../../src/boundary/boundary.ts";
import type { Identity } from "../../src/std/process.ts";
import type { Chance } from "./chance.ts";
import type { ProcessTable, Running } from "./processes.ts";
import type { Life } from "./steps.ts";

export type Ref = { readonly jobId: string; readonly epoch: string };

export const launchIdOf = ({ jobId, epoch }: Ref): string => `attempt-${jobId}-${epoch}`;

type Shim = {
  readonly ref: Ref;
  readonly process: Running;
  /** The very one that it was started for: another may have taken its name since. */
  readonly directory: Directory | undefined;
  /** Whose end closes the gate. */
  readonly holder: Life;
  gate: "closed" | "waiting" | "opened";
  state: "spawned" | "waiting" | "running" | "gone";
  isStopping: boolean;
};

/** What survives a power cut: written through by those who make it. */
type Directory = { readonly ref: Ref; identity?: Identity; exit?: string };

export type LaunchesOptions = {
  readonly chance: Chance;
  readonly table: ProcessTable;
  /** A job begins to run. */
  readonly onRun: (ref: Ref) => void;
  /** Its gate opens: from now on it may run. */
  readonly onGate: (ref: Ref) => void;
};

export class Launches {
  readonly #options: LaunchesOptions;
  readonly #directories = new Map<string, Directory>();
  /** By the serial of their process: a launch whose directory was removed may be there once more. */
  readonly #shims = new Map<number, Shim>();
  /** Processes of a job whose shim was killed. */
  readonly #remains = new Set<string>();

  constructor(options: LaunchesOptions) {
    this.#options = options;
  }

  get refs(): readonly Ref[] {
    return [...this.#directories.values()].map(({ ref }) => ref);
  }

  isRunning(jobId: string): boolean {
    return (
      [...this.#shims.values()].some((shim) => shim.ref.jobId === jobId && shim.state === "running") ||
      [...this.#remains].some((launchId) => launchId.startsWith(`attempt-${jobId}-`))
    );
  }

  /** False: it is there already. */
  create(ref: Ref): boolean {
    if (this.#directories.has(launchIdOf(ref))) return false;
    this.#directories.set(launchIdOf(ref), { ref });
    return true;
  }

  spawn(ref: Ref, holder: Life): boolean {
    const process = this.#options.table.spawn();
    if (process === undefined) return false;
    const directory = this.#directories.get(launchIdOf(ref));
    const shim: Shim = { ref, process, directory, holder, gate: "waiting", state: "spawned", isStopping: false };
    this.#shims.set(process.serial, shim);
    return true;
  }

  #shimsOf(ref: Ref): readonly Shim[] {
    return [...this.#shims.values()].filter((shim) => launchIdOf(shim.ref) === launchIdOf(ref));
  }

  /** Its identity once the shim has written it; "gone" when there is no shim. */
  identity(ref: Ref): Identity | "gone" | undefined {
    const written = this.#directories.get(launchIdOf(ref))?.identity;
    if (written !== undefined) return written;
    return this.#shimsOf(ref).length === 0 ? "gone" : undefined;
  }

  openGate(ref: Ref, identity: Identity): void {
    const shim = this.#shimsOf(ref).find((each) => each.process.identity === identity);
    if (shim?.gate !== "waiting") return;
    this.#options.onGate(ref);
    shim.gate = "opened";
  }

  closeGate(ref: Ref): void {
    for (const shim of this.#shimsOf(ref)) if (shim.gate === "waiting") shim.gate = "closed";
  }

  remove(ref: Ref): void {
    this.#directories.delete(launchIdOf(ref));
  }

  /** As the launcher looks at an entry or a directory. */
  look(ref: Ref, recorded: Identity | undefined): Found {
    const launchId = launchIdOf(ref);
    const directory = this.#directories.get(launchId);
    if (directory === undefined) {
      // By what is remembered of its shim, and by the mark that its processes bear.
      const isAlive = recorded !== undefined && this.#options.table.find(recorded) !== undefined;
      const runs =
        isAlive || this.#remains.has(launchId) || this.#shimsOf(ref).some(({ state }) => state === "running");
      return { kind: "missing", survivors: runs ? [launchId] : [] };
    }
    if (directory.exit === "not-started") return { kind: "not-started" };
    if (directory.exit !== undefined) return { kind: "ended", outcome: directory.exit };
    const identity = directory.identity ?? recorded;
    if (identity === undefined) return { kind: this.#shimsOf(ref).length === 0 ? "not-started" : "remains" };
    if (this.#options.table.find(identity) !== undefined) return { kind: "alive" };
    return { kind: this.#remains.has(launchId) ? "remains" : "interrupted" };
  }

  /** The shim that was signalled ends its job, in its own time, and writes how. */
  stopProcess(process: Running): void {
    const shim = this.#shims.get(process.serial);
    if (shim?.state === "running") shim.isStopping = true;
    else if (shim?.state === "waiting") this.#finish(shim, "not-started");
  }

  /** What the world may do next with shims and jobs. */
  events(): readonly (() => unknown)[] {
    const events: (() => unknown)[] = [];
    for (const shim of this.#shims.values()) {
      if (shim.holder.isOver && shim.gate === "waiting") shim.gate = "closed";
      if (shim.state === "spawned") events.push(() => this.#writeIdentity(shim));
      if (shim.state === "waiting" && shim.gate === "closed") events.push(() => this.#finish(shim, "not-started"));
      if (shim.state === "waiting" && shim.gate === "opened") events.push(() => this.#run(shim));
      if (shim.state === "running" && !shim.isStopping) events.push(() => this.#finish(shim, "exited"));
      // A stop has its grace, in which much else happens.
      else if (shim.state === "running")
        events.push(() => this.#options.chance.happens(0.15) && this.#finish(shim, "signalled"));
    }
    for (const launchId of this.#remains) events.push(() => void this.#remains.delete(launchId));
    return events;
  }

  #writeIdentity(shim: Shim): void {
    const directory = this.#lyingOf(shim);
    if (directory === undefined) return this.#finish(shim, "not-started");
    directory.identity = shim.process.identity;
    shim.state = "waiting";
  }

  #run(shim: Shim): void {
    this.#options.onRun(shim.ref);
    shim.state = "running";
  }

  #finish(shim: Shim, exit: string): void {
    const directory = this.#lyingOf(shim);
    if (directory !== undefined) directory.exit = exit;
    this.#end(shim);
  }

  /** Undefined when it was removed. */
  #lyingOf({ ref, directory }: Shim): Directory | undefined {
    return this.#directories.get(launchIdOf(ref)) === directory ? directory : undefined;
  }

  #end(shim: Shim): void {
    shim.state = "gone";
    this.#options.table.end(shim.process);
    this.#shims.delete(shim.process.serial);
  }

  killShim(): void {
    const shims = [...this.#shims.values()];
    if (shims.length === 0) return;
    const shim = this.#options.chance.pick(shims);
    if (shim.state === "running" && this.#options.chance.happens(0.3)) this.#remains.add(launchIdOf(shim.ref));
    this.#end(shim);
  }

  /** Somebody cleaned up: mostly after launches that run no more. */
  loseDirectories(): void {
    for (const [launchId, { ref }] of this.#directories)
      if (this.#options.chance.happens(this.#shimsOf(ref).length === 0 ? 0.5 : 0.1)) this.#directories.delete(launchId);
  }

  powerCut(): void {
    this.#shims.clear();
    this.#remains.clear();
  }
}
