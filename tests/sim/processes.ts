// SPDX-License-Identifier: Apache-2.0
// A simulated process table: few pids, which are taken again soon; start ticks of 10 ms; on newer kernels an inode for each
// pidfd. A signal goes to whatever the node takes for the process that it means; promise P7 is that it is that very one.

import type { Identity } from "../../src/std/process.ts";
import type { Chance } from "./chance.ts";
import { must } from "./run.ts";

const PIDS = 6;
const TICK_MS = 10;

export type Running = {
  readonly identity: Identity;
  /** Never the same for two processes. */
  readonly serial: number;
};

export type TableOptions = {
  readonly chance: Chance;
  /** Kernels from 6.9. */
  readonly hasInodes: boolean;
  /** The broken variant compares boot and pid only. */
  readonly comparesStart: boolean;
};

export class ProcessTable {
  readonly #options: TableOptions;
  readonly #running = new Map<number, Running>();
  /** Which process an identity was given to. */
  readonly #given = new Map<string, number>();
  /** Where no inode tells two processes in one tick apart, the table is large enough not to take a pid again that soon. */
  readonly #lastTick = new Map<number, number>();
  #freed: number | undefined;
  #serial = 0;
  #nowMs = 0;
  #boot = 0;

  constructor(options: TableOptions) {
    this.#options = options;
  }

  get #bootId(): string {
    return `boot-${this.#boot}`;
  }

  pass(ms: number): void {
    this.#nowMs += ms;
  }

  /** Undefined when every pid is taken. */
  spawn(): Running | undefined {
    const { chance, hasInodes } = this.#options;
    const tick = Math.floor(this.#nowMs / TICK_MS);
    const free = Array.from({ length: PIDS }, (_, index) => index + 2).filter(
      (pid) => !this.#running.has(pid) && (hasInodes || this.#lastTick.get(pid) !== tick),
    );
    if (free.length === 0) return undefined;
    // The one that became free last is taken again often.
    const freed = this.#freed;
    const pid = freed !== undefined && free.includes(freed) && chance.happens(0.5) ? freed : chance.pick(free);
    const serial = ++this.#serial;
    const identity: Identity = {
      bootId: this.#bootId,
      pid,
      startTicks: String(tick),
      ...(hasInodes ? { pidfdInode: String(1000 + serial) } : {}),
    };
    const running = { identity, serial };
    this.#running.set(pid, running);
    this.#lastTick.set(pid, tick);
    this.#given.set(keyOf(identity), serial);
    return running;
  }

  end({ identity, serial }: Running): void {
    if (this.#running.get(identity.pid)?.serial !== serial) return;
    this.#running.delete(identity.pid);
    this.#freed = identity.pid;
  }

  reboot(): void {
    this.#boot++;
    this.#running.clear();
    this.#lastTick.clear();
  }

  isRunning({ identity, serial }: Running): boolean {
    return this.#running.get(identity.pid)?.serial === serial;
  }

  /** What a node finds that has only the identity. */
  find(identity: Identity): Running | undefined {
    const found = this.#running.get(identity.pid);
    if (found === undefined || found.identity.bootId !== identity.bootId) return undefined;
    if (!this.#options.comparesStart) return found;
    return keyOf(found.identity) === keyOf(identity) ? found : undefined;
  }

  /** The process that was signalled. */
  signal(identity: Identity): Running | undefined {
    const found = this.find(identity);
    if (found !== undefined)
      must(
        this.#given.get(keyOf(identity)) === found.serial,
        `P7: process ${identity.pid} was signalled in the place of another`,
      );
    return found;
  }
}

function keyOf({ bootId, pid, startTicks, pidfdInode = "" }: Identity): string {
  return `${bootId}/${pid}/${startTicks}/${pidfdInode}`;
}
