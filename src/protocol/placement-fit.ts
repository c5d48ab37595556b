// SPDX-License-Identifier: Apache-2.0
// Whether a need has room in a machine, pure: the fastest allowed path that does, with what it takes of which pool, or what
// is missing on each path. The same rule for totals (does it fit at all?) and for what is free now (can it start?).

import { type Gpu, HOST, type Draw, type Machine, type Room } from "./placement-pools.ts";
import { allowedPaths, demandOf, gibibytes, type Needs, type Path } from "./placement.ts";

/** Where a job runs on a node, and what it takes there. */
export type Place = {
  readonly path: Path;
  /** How many allowed paths are faster: 0 is as fast as it can be. */
  readonly rank: number;
  readonly draws: readonly Draw[];
};

/** Why one path has no room. */
export type Miss = {
  readonly path: Path;
  /** none: there is no GPU. unusable: there are some, and all stand in a state that is not ok. small: too little memory. */
  readonly kind: "none" | "unusable" | "unified" | "small";
  readonly what: string;
  readonly needBytes: number;
  readonly bestBytes: number;
};

export type Fit =
  | { readonly kind: "fits"; readonly place: Place; readonly misses: readonly Miss[] }
  | { readonly kind: "short"; readonly misses: readonly Miss[] };

export function fit(needs: Needs, machine: Machine, room: Room): Fit {
  const misses: Miss[] = [];
  for (const [rank, path] of allowedPaths(needs).entries()) {
    const found = drawsFor(needs, path, machine, room);
    if (!("kind" in found)) return { kind: "fits", place: { path, rank, draws: found.draws }, misses };
    misses.push(found);
  }
  return { kind: "short", misses };
}

type Found = { readonly draws: readonly Draw[] } | Miss;

function drawsFor(needs: Needs, path: Path, machine: Machine, room: Room): Found {
  const { hostBytes, gpuBytes } = demandOf(needs, path);
  const host: Draw[] = hostBytes === 0 ? [] : [{ pool: HOST, gpu: null, bytes: hostBytes }];
  const small = (what: string, needBytes: number, bestBytes: number): Miss => ({
    path,
    kind: "small",
    what,
    needBytes,
    bestBytes: Math.max(0, bestBytes),
  });
  const hostRoom = room.pool(HOST);
  if (path === "cpu") {
    return hostBytes > 0 && hostBytes > hostRoom ? small("memory", hostBytes, hostRoom) : { draws: host };
  }
  const gpus = usable(machine, path);
  if (!Array.isArray(gpus)) return { path, ...gpus, needBytes: gpuBytes, bestBytes: 0 };
  if (hostBytes > hostRoom) return small("memory", hostBytes, hostRoom);
  const roomOf = (gpu: Gpu): number => Math.min(room.gpu(gpu), gpu.pool === HOST ? hostRoom - hostBytes : Infinity);
  const beside = spread(gpuBytes, gpus, roomOf, needs.gpus ?? 1);
  if (beside !== undefined) return { draws: [...host, ...beside] };
  const most = reach(gpus, roomOf, needs.gpus ?? 1);
  return small(`memory beside ${(needs.gpus ?? 1) > 1 ? `up to ${needs.gpus} GPUs` : "a GPU"}`, gpuBytes, most);
}

/** The GPUs that this path can use; when there are none, why. */
function usable(machine: Machine, path: Path): Gpu[] | Pick<Miss, "kind" | "what"> {
  if (machine.gpus.length === 0) return { kind: "none", what: "there is no GPU" };
  const ok = machine.gpus.filter((gpu) => gpu.problem === null);
  if (ok.length === 0) {
    return { kind: "unusable", what: machine.gpus.map((gpu) => `${gpu.name}: ${gpu.problem ?? ""}`).join("; ") };
  }
  // Where both parts lie in one memory, splitting saves none of it.
  const fitting = path === "split" ? ok.filter((gpu) => gpu.pool !== HOST) : ok;
  return fitting.length > 0 ? fitting : { kind: "unified", what: "its GPU shares the machine's memory" };
}

/** Beside one GPU, the one with the least room that is enough, so that a larger need finds the larger one; else over several. */
function spread(
  bytes: number,
  gpus: readonly Gpu[],
  roomOf: (gpu: Gpu) => number,
  most: number,
): readonly Draw[] | undefined {
  const draw = (gpu: Gpu, part: number): Draw => ({ pool: gpu.pool, gpu: gpu.id, bytes: part });
  const [one] = gpus.filter((gpu) => roomOf(gpu) >= bytes).sort((a, b) => roomOf(a) - roomOf(b));
  if (one !== undefined) return [draw(one, bytes)];
  const draws: Draw[] = [];
  let left = bytes;
  for (const gpu of widest(gpus, roomOf, most)) {
    const part = Math.min(left, roomOf(gpu));
    draws.push(draw(gpu, part));
    left -= part;
    if (left === 0) return draws;
  }
  return undefined;
}

function reach(gpus: readonly Gpu[], roomOf: (gpu: Gpu) => number, most: number): number {
  const sum = widest(gpus, roomOf, most).reduce((total, gpu) => total + roomOf(gpu), 0);
  return Math.max(sum, ...gpus.map(roomOf));
}

/** Cards of their own memory, those with the most room first. Several GPUs of one shared memory would count it twice. */
function widest(gpus: readonly Gpu[], roomOf: (gpu: Gpu) => number, most: number): readonly Gpu[] {
  return gpus
    .filter((gpu) => gpu.pool !== HOST && roomOf(gpu) > 0)
    .sort((a, b) => roomOf(b) - roomOf(a))
    .slice(0, most);
}

/** One path's shortage in words. */
export function missText(miss: Miss): string {
  if (miss.kind !== "small") return miss.what;
  const [need, best] = [gibibytes(miss.needBytes), gibibytes(miss.bestBytes)];
  return `needs ${need} of ${miss.what}, has ${best} at most, short by ${gibibytes(miss.needBytes - miss.bestBytes)}`;
}
