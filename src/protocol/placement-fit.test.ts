// SPDX-License-Identifier: Apache-2.0
// One table of machines, each as its facts tell it, and what a need finds there: the path, what it takes of which pool, or
// what is missing in numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Device } from "./node-schema.ts";
import { fit, missText } from "./placement-fit.ts";
import { type Hold, HOST, machineOf, type MachineFacts, roomNow, totalRoom } from "./placement-pools.ts";
import type { Needs } from "./placement.ts";

const GIB = 2 ** 30;

const gpu = (change: Partial<Device>): Device => ({
  kind: "gpu",
  vendor: "nvidia",
  name: "GPU",
  address: "0000:01:00.0",
  memoryBytes: null,
  memoryAvailableBytes: null,
  memoryCapBytes: null,
  unified: false,
  driver: null,
  state: "ok",
  reason: null,
  ...change,
});
const facts = (gib: number, devices: readonly Device[] = [], freeGib: number | null = null): MachineFacts => ({
  arch: "x64",
  memoryTotalBytes: gib * GIB,
  memoryAvailableBytes: freeGib === null ? null : freeGib * GIB,
  floorBytes: null,
  devices: [...devices],
});
const card = (index: number, gib: number, freeGib: number | null = null): Device =>
  gpu({
    name: "RTX 4090",
    address: `0000:0${index}:00.0`,
    memoryBytes: gib * GIB,
    memoryAvailableBytes: freeGib === null ? null : freeGib * GIB,
  });

const machines = {
  spark: facts(121.7, [gpu({ name: "NVIDIA GB10", unified: true, memoryCapBytes: 101 * GIB })]),
  orin: facts(15.3, [gpu({ name: "Orin NX", address: "gpu.0", unified: true })]),
  strix: facts(128, [
    gpu({ vendor: "amd", name: "Strix Halo", unified: true, memoryBytes: GIB / 2, memoryCapBytes: 96 * GIB }),
  ]),
  apple16: facts(16, [
    gpu({ vendor: "apple", name: "M4", address: null, unified: true, memoryCapBytes: 16 * 0.66 * GIB }),
  ]),
  apple128: facts(128, [
    gpu({ vendor: "apple", name: "M4 Max", address: null, unified: true, memoryCapBytes: 128 * 0.75 * GIB }),
  ]),
  quad: facts(256, [card(1, 24), card(2, 24), card(3, 24), card(4, 24)]),
  mixed: facts(64, [card(1, 48), card(2, 24), card(3, 32)]),
  bare: facts(64),
  unreadable: facts(64, [
    gpu({ name: "RTX 4090", state: "unreadable", unified: null, reason: "this account may not open it" }),
  ]),
  guessless: facts(64, [gpu({ name: "Some GPU", unified: null, memoryBytes: 8 * GIB })]),
  shared: facts(128, [card(1, 24, 1.5), card(2, 24, 23)], 100),
} as const satisfies Record<string, MachineFacts>;

type Row = {
  readonly on: keyof typeof machines;
  readonly needs: Needs;
  /** The path, or what is missing on each. */
  readonly is: string;
  readonly takes?: readonly string[];
  /** Judged by what is free now, too. */
  readonly now?: string;
};
const full = (gib: number, more: Needs = {}): Needs => ({ needFullBytes: gib * GIB, ...more });
const gib = (amount: number): number => amount * GIB;

const table: readonly Row[] = [
  // DGX Spark: one pool; its tool says [N/A], which is unknown and not zero. Above the cap the processor runs it.
  { on: "spark", needs: full(100), is: "gpu", takes: ["host 100 by 0000:01:00.0"] },
  { on: "spark", needs: full(110), is: "cpu", takes: ["host 110"] },
  {
    on: "spark",
    needs: full(110, { paths: ["gpu"] }),
    is: "needs 110.0 GiB of memory beside a GPU, has 101.0 GiB at most, short by 9.0 GiB",
  },
  { on: "spark", needs: full(110, { needHostBytes: gib(50) }), is: "cpu" },
  {
    on: "spark",
    needs: full(130, { paths: ["cpu"] }),
    is: "needs 130.0 GiB of memory, has 121.2 GiB at most, short by 8.8 GiB",
  },
  // Its own part and that of the GPU come from one pool.
  { on: "spark", needs: full(100, { memoryBytes: gib(20), paths: ["gpu"] }), is: "gpu" },
  {
    on: "spark",
    needs: full(100, { memoryBytes: gib(22), paths: ["gpu"] }),
    is: "needs 100.0 GiB of memory beside a GPU, has 99.2 GiB at most, short by 0.8 GiB",
  },
  // Jetson: no cap is known, so all but the reserve.
  { on: "orin", needs: full(14), is: "gpu" },
  {
    on: "orin",
    needs: full(15, { paths: ["gpu"] }),
    is: "needs 15.0 GiB of memory beside a GPU, has 14.8 GiB at most, short by 0.2 GiB",
  },
  // Strix Halo: the carve-out is not its limit, what the driver maps is.
  { on: "strix", needs: full(90), is: "gpu", takes: ["host 90 by 0000:01:00.0"] },
  { on: "strix", needs: full(100), is: "cpu" },
  // Apple: a working-set cap.
  { on: "apple16", needs: full(10), is: "gpu", takes: ["host 10 by gpu0"] },
  { on: "apple16", needs: full(12), is: "cpu" },
  {
    on: "apple16",
    needs: full(16),
    is: "needs 16.0 GiB of memory beside a GPU, has 10.6 GiB at most, short by 5.4 GiB; needs 16.0 GiB of memory, has 15.5 GiB at most, short by 0.5 GiB",
  },
  { on: "apple128", needs: full(96), is: "gpu" },
  { on: "apple128", needs: full(97), is: "cpu" },
  // Four cards: each is a pool of its own, and their memory is no one pool unless the job can spread.
  { on: "quad", needs: full(24), is: "gpu" },
  {
    on: "quad",
    needs: full(40, { paths: ["gpu"] }),
    is: "needs 40.0 GiB of memory beside a GPU, has 24.0 GiB at most, short by 16.0 GiB",
  },
  {
    on: "quad",
    needs: full(40, { gpus: 2 }),
    is: "gpu",
    takes: ["0000:01:00.0 24 by 0000:01:00.0", "0000:02:00.0 16 by 0000:02:00.0"],
  },
  {
    on: "quad",
    needs: full(100, { gpus: 4, paths: ["gpu"] }),
    is: "needs 100.0 GiB of memory beside up to 4 GPUs, has 96.0 GiB at most, short by 4.0 GiB",
  },
  {
    on: "quad",
    needs: full(40, { needHostBytes: gib(18) }),
    is: "split",
    takes: ["host 18", "0000:01:00.0 22 by 0000:01:00.0"],
  },
  { on: "quad", needs: full(40, { needMinBytes: gib(45) }), is: "cpu", takes: ["host 45"] },
  // Of several that would do, the smallest: a larger need finds the larger one.
  { on: "mixed", needs: full(20), is: "gpu", takes: ["0000:02:00.0 20 by 0000:02:00.0"] },
  { on: "mixed", needs: full(30), is: "gpu", takes: ["0000:03:00.0 30 by 0000:03:00.0"] },
  // The processor alone: slow is no reason to exclude, too small is.
  { on: "bare", needs: full(40), is: "cpu" },
  {
    on: "bare",
    needs: full(40, { needMinBytes: gib(64) }),
    is: "there is no GPU; needs 64.0 GiB of memory, has 63.5 GiB at most, short by 0.5 GiB",
  },
  { on: "bare", needs: full(1, { paths: ["gpu"] }), is: "there is no GPU" },
  { on: "bare", needs: {}, is: "cpu", takes: [] },
  { on: "bare", needs: { memoryBytes: gib(63.5) }, is: "cpu" },
  // There, and not usable: never "no GPU".
  { on: "unreadable", needs: full(20), is: "cpu" },
  {
    on: "unreadable",
    needs: full(20, { paths: ["gpu"] }),
    is: "RTX 4090 at 0000:01:00.0: unreadable, this account may not open it",
  },
  {
    on: "guessless",
    needs: full(4, { paths: ["gpu"] }),
    is: "Some GPU at 0000:01:00.0: it is not known whether it shares the machine's memory",
  },
  // A stranger holds one card: both fit by totals, the other one starts now.
  {
    on: "shared",
    needs: full(20),
    is: "gpu",
    takes: ["0000:01:00.0 20 by 0000:01:00.0"],
    now: "0000:02:00.0 20 by 0000:02:00.0",
  },
  {
    on: "shared",
    needs: full(24, { paths: ["gpu"] }),
    is: "gpu",
    now: "needs 24.0 GiB of memory beside a GPU, has 23.0 GiB at most, short by 1.0 GiB",
  },
  {
    on: "shared",
    needs: { memoryBytes: gib(110) },
    is: "cpu",
    now: "needs 110.0 GiB of memory, has 99.5 GiB at most, short by 10.5 GiB",
  },
];

function told(found: ReturnType<typeof fit>): { readonly is: string; readonly takes: readonly string[] } {
  if (found.kind === "short") return { is: found.misses.map(missText).join("; "), takes: [] };
  const takes = found.place.draws.map(
    ({ pool, bytes, gpu: by }) => `${pool} ${bytes / GIB}${by === null ? "" : ` by ${by}`}`,
  );
  return { is: found.place.path, takes };
}

for (const row of table) {
  test(`${row.on}: ${JSON.stringify(row.needs, (_, value: unknown) => (typeof value === "number" && value > 64 ? `${value / GIB}G` : value))}`, () => {
    const machine = machineOf(machines[row.on]);
    const found = told(fit(row.needs, machine, totalRoom(machine)));
    assert.equal(found.is, row.is);
    if (row.takes !== undefined) assert.deepEqual(found.takes, row.takes);
    if (row.now === undefined) return;
    const now = told(fit(row.needs, machine, roomNow(machine, [])));
    assert.equal(now.takes[0] ?? now.is, row.now);
  });
}

const hold = (pool: string, amount: number, isSettled: boolean, by: string | null = null): Hold => ({
  draws: [{ pool, gpu: by, bytes: gib(amount) }],
  isSettled,
});

test("a live lease takes its share of the totals, and while it is young of what is available too", () => {
  const machine = machineOf(facts(64.5, [], 40.5));
  const free = (holds: readonly Hold[]): number => roomNow(machine, holds).pool(HOST) / GIB;
  assert.equal(free([]), 40, "strangers use 24");
  assert.equal(free([hold(HOST, 10, false)]), 30, "young: what is available still counts what it has not touched");
  assert.equal(free([hold(HOST, 10, true)]), 40, "settled: what is available is already less by what it uses");
  assert.equal(free([hold(HOST, 30, true)]), 34, "what it asked for stays its own, used or not");
  assert.equal(free([hold(HOST, 30, true), hold(HOST, 8, false)]), 26);
  assert.equal(roomNow(machineOf(facts(64.5)), [hold(HOST, 10, false)]).pool(HOST) / GIB, 54, "unknown is not zero");
});

test("a driver's cap counts what leases use through that GPU, and the pool what they use at all", () => {
  const machine = machineOf(machines.spark);
  const [gb10] = machine.gpus;
  assert.ok(gb10 !== undefined);
  const free = (holds: readonly Hold[]): number => Math.round((roomNow(machine, holds).gpu(gb10) / GIB) * 10) / 10;
  assert.equal(free([]), 101);
  assert.equal(free([hold(HOST, 60, true, gb10.id)]), 41);
  assert.equal(free([hold(HOST, 15, true)]), 101, "the processor's share is not the GPU's");
  assert.equal(free([hold(HOST, 60, true)]), 61.2, "but it is of the same memory");
});

test("what scenes keep free is a reserve, where it is more than the machine's own", () => {
  const usable = (floorBytes: number | null, total = 64): number =>
    (machineOf({ ...facts(total), floorBytes }).pools.get(HOST)?.usableBytes ?? 0) / GIB;
  assert.deepEqual([usable(null), usable(gib(4)), usable(gib(0.1)), usable(null, 1)], [63.5, 60, 63.5, 0.9375]);
});
