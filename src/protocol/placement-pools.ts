// SPDX-License-Identifier: Apache-2.0
// The memory of a machine as pools, pure. A discrete card has a pool of its own beside the machine's; on a unified machine
// there is one pool, and the GPU refers to it, up to its driver's cap. Swap is never capacity. A device that is not "ok" is
// there with its reason and lends nothing; unknown is not zero.

import type { Device, NodeFacts } from "./node-schema.ts";

/** The machine's own memory; every other pool has the name of its card. */
export const HOST = "host";

export type MachineFacts = Pick<NodeFacts, "arch" | "memoryTotalBytes" | "devices"> & {
  /** What nobody uses now; null: not known. */
  readonly memoryAvailableBytes: number | null;
  /** Free memory that the node's scenes keep; null: none. */
  readonly floorBytes: number | null;
};

export type Pool = {
  /** Total less the reserve. */
  readonly usableBytes: number;
  /** Of that, what nobody uses now, strangers included; null: not known. May be below zero. */
  readonly availableBytes: number | null;
};

export type Gpu = {
  readonly id: string;
  /** For people. */
  readonly name: string;
  readonly pool: string;
  /** The most of its pool that its driver lets it use; null: all of it. */
  readonly capBytes: number | null;
  /** Why it lends nothing; null when it does. */
  readonly problem: string | null;
};

export type Machine = { readonly pools: ReadonlyMap<string, Pool>; readonly gpus: readonly Gpu[] };

/** What the kernel, the agent and its shims take of any machine: half a gibibyte, or a sixteenth of a small one. */
const RESERVE_BYTES = 512 * 1024 * 1024;
const RESERVE_SHARE = 16;

export function reserveOf({ memoryTotalBytes, floorBytes }: MachineFacts): number {
  return Math.max(Math.min(RESERVE_BYTES, memoryTotalBytes / RESERVE_SHARE), floorBytes ?? 0);
}

export function machineOf(facts: MachineFacts): Machine {
  const reserve = reserveOf(facts);
  const { memoryTotalBytes, memoryAvailableBytes } = facts;
  const pools = new Map<string, Pool>([
    [
      HOST,
      {
        usableBytes: Math.max(0, memoryTotalBytes - reserve),
        availableBytes: memoryAvailableBytes === null ? null : memoryAvailableBytes - reserve,
      },
    ],
  ]);
  const gpus = facts.devices.filter((device) => device.kind === "gpu").map(gpuOf);
  for (const [index, device] of facts.devices.filter(({ kind }) => kind === "gpu").entries()) {
    const gpu = gpus[index];
    if (gpu === undefined || gpu.pool === HOST || gpu.problem !== null) continue;
    pools.set(gpu.pool, { usableBytes: device.memoryBytes ?? 0, availableBytes: device.memoryAvailableBytes });
  }
  return { pools, gpus };
}

function gpuOf(device: Device, index: number): Gpu {
  const id = device.address ?? `gpu${index}`;
  const name = device.address === null ? device.name : `${device.name} at ${device.address}`;
  const isUnified = device.unified === true;
  return {
    id,
    name,
    pool: isUnified ? HOST : id,
    // A card's own memory has no cap; what it may use of the machine's is not its own.
    capBytes: isUnified ? device.memoryCapBytes : null,
    problem: problemOf(device),
  };
}

/** Why this device lends no memory. Never "no GPU": it is there, and this is what stands in the way. */
function problemOf({ state, reason, unified, memoryBytes }: Device): string | null {
  if (state !== "ok") return reason === null ? state : `${state}, ${reason}`;
  if (unified === null) return "it is not known whether it shares the machine's memory";
  if (!unified && memoryBytes === null) return "its memory is not known";
  return null;
}

/** Memory of one pool that a lease takes, and the GPU through which it is used; null: through none. */
export type Draw = { readonly pool: string; readonly gpu: string | null; readonly bytes: number };

/** What a live lease holds. isSettled: long enough there that what is available already lacks what it uses. */
export type Hold = { readonly draws: readonly Draw[]; readonly isSettled: boolean };

/** What is left of each pool, and of what each usable GPU may use. */
export type Room = { readonly pool: (id: string) => number; readonly gpu: (gpu: Gpu) => number };

/** By totals alone: what decides whether a job fits at all. */
export function totalRoom(machine: Machine): Room {
  return roomWith(
    machine,
    (id) => machine.pools.get(id)?.usableBytes ?? 0,
    () => 0,
  );
}

/**
 * Now: totals less what live leases asked for, and no more than is available. What a young lease asked for is taken off the
 * available too: it may not have touched its memory yet. The rest of what is missing there belongs to strangers.
 */
export function roomNow(machine: Machine, holds: readonly Hold[]): Room {
  const taken = (some: readonly Hold[], of: (draw: Draw) => boolean): number =>
    some.flatMap((hold) => hold.draws).reduce((sum, draw) => sum + (of(draw) ? draw.bytes : 0), 0);
  const young = holds.filter((hold) => !hold.isSettled);
  const pool = (id: string): number => {
    const { usableBytes = 0, availableBytes = null } = machine.pools.get(id) ?? {};
    const byLeases = usableBytes - taken(holds, (draw) => draw.pool === id);
    if (availableBytes === null) return byLeases;
    return Math.min(byLeases, availableBytes - taken(young, (draw) => draw.pool === id));
  };
  return roomWith(machine, pool, (gpu) => taken(holds, (draw) => draw.gpu === gpu.id));
}

function roomWith(machine: Machine, pool: (id: string) => number, used: (gpu: Gpu) => number): Room {
  const free = new Map([...machine.pools.keys()].map((id) => [id, pool(id)]));
  const ofPool = (id: string): number => free.get(id) ?? 0;
  const ofGpu = (gpu: Gpu): number =>
    Math.min(ofPool(gpu.pool), gpu.capBytes === null ? Number.POSITIVE_INFINITY : gpu.capBytes - used(gpu));
  return { pool: ofPool, gpu: ofGpu };
}
