// SPDX-License-Identifier: Apache-2.0
// What holds of placement for every machine and every need (promise P6): more memory never hurts, a slow path never
// excludes, nothing is lent that is not there, and a reason exists exactly when nothing fits.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Device } from "./node-schema.ts";
import { fit } from "./placement-fit.ts";
import {
  type Hold,
  HOST,
  type Machine,
  machineOf,
  type MachineFacts,
  type Room,
  roomNow,
  totalRoom,
} from "./placement-pools.ts";
import { blockedReason, type Candidate, canServe, isFit, judge } from "./placement-verdict.ts";
import { allowedPaths, needFaults, type Needs, paths } from "./placement.ts";

const RUNS = { numRuns: 1000 };
const size = fc.integer({ min: 0, max: 64 });
const some = fc.integer({ min: 1, max: 64 });

const device = (index: number): fc.Arbitrary<Device> =>
  fc.record({
    kind: fc.constant("gpu"),
    vendor: fc.constant("v"),
    name: fc.constant("n"),
    address: fc.constant(`a${index}`),
    memoryBytes: fc.option(some),
    memoryAvailableBytes: fc.option(size),
    memoryCapBytes: fc.option(some),
    unified: fc.constantFrom(true, false, null),
    driver: fc.constant(null),
    state: fc.constantFrom("ok", "ok", "ok", "unreadable"),
    reason: fc.constant(null),
  });
const facts: fc.Arbitrary<MachineFacts> = fc.record({
  arch: fc.constantFrom("x64", "arm64"),
  memoryTotalBytes: size,
  memoryAvailableBytes: fc.option(size),
  floorBytes: fc.option(fc.integer({ min: 0, max: 8 })),
  devices: fc
    .integer({ min: 0, max: 3 })
    .chain((count) => fc.tuple(...Array.from({ length: count }, (_, i) => device(i)))),
});
const needs: fc.Arbitrary<Needs> = fc
  .record(
    {
      memoryBytes: size,
      needFullBytes: some,
      needHostBytes: some,
      needMinBytes: size,
      paths: fc.uniqueArray(fc.constantFrom(...paths), { minLength: 1 }),
      gpus: fc.integer({ min: 1, max: 3 }),
    },
    { requiredKeys: [] },
  )
  .filter((made) => needFaults(made).length === 0);
const holds = (machine: Machine): fc.Arbitrary<readonly Hold[]> => {
  const draw = fc.record({
    pool: fc.constantFrom(...machine.pools.keys()),
    gpu: fc.constantFrom(null, ...machine.gpus.map((gpu) => gpu.id)),
    bytes: size,
  });
  return fc.array(fc.record({ draws: fc.array(draw, { maxLength: 2 }), isSettled: fc.boolean() }), { maxLength: 3 });
};
const machineWithHolds = facts.map(machineOf).chain((machine) => fc.tuple(fc.constant(machine), holds(machine)));

const fitsIn = (need: Needs, machine: Machine, room: Room): boolean => fit(need, machine, room).kind === "fits";
const fits = (need: Needs, given: MachineFacts): boolean => {
  const machine = machineOf(given);
  return fitsIn(need, machine, totalRoom(machine));
};

test("P6: more memory never turns what fits into too small", () => {
  const more = fc.record({ host: size, own: size, cap: size });
  fc.assert(
    fc.property(facts, needs, more, (given, need, { host, own, cap }) => {
      fc.pre(fits(need, given));
      const grown = given.devices.map((one) => ({
        ...one,
        memoryBytes: one.memoryBytes === null ? null : one.memoryBytes + own,
        memoryCapBytes: one.memoryCapBytes === null ? null : one.memoryCapBytes + cap,
      }));
      assert.ok(fits(need, { ...given, memoryTotalBytes: given.memoryTotalBytes + host, devices: grown }));
    }),
    RUNS,
  );
});

test("P6: slow never excludes: whatever fits on one allowed path fits, and the fastest of those is taken", () => {
  fc.assert(
    fc.property(facts, needs, (given, need) => {
      const machine = machineOf(given);
      const room = totalRoom(machine);
      const found = fit(need, machine, room);
      const alone = allowedPaths(need).filter((path) => fitsIn(onlyOn(need, path), machine, room));
      assert.equal(found.kind === "fits" ? found.place.path : undefined, alone[0]);
    }),
    RUNS,
  );
});

/** The same need where only this path is left, with the numbers that belong to it. */
function onlyOn(need: Needs, path: (typeof paths)[number]): Needs {
  if (need.needFullBytes === undefined) return need;
  const { needHostBytes, needMinBytes, gpus, ...rest } = need;
  return {
    ...rest,
    paths: [path],
    ...(path === "split" && needHostBytes !== undefined ? { needHostBytes } : {}),
    ...(path === "cpu" && needMinBytes !== undefined ? { needMinBytes } : {}),
    ...(path !== "cpu" && gpus !== undefined ? { gpus } : {}),
  };
}

test("P6: nothing is lent that is not there, and what can start now fits by totals too", () => {
  fc.assert(
    fc.property(machineWithHolds, needs, ([machine, held], need) => {
      const room = roomNow(machine, held);
      const found = fit(need, machine, room);
      if (found.kind === "short") return;
      assert.ok(fitsIn(need, machine, totalRoom(machine)));
      const { draws } = found.place;
      for (const pool of machine.pools.keys()) {
        const sum = draws.reduce((total, draw) => total + (draw.pool === pool ? draw.bytes : 0), 0);
        assert.ok(sum === 0 || sum <= room.pool(pool), pool);
      }
      for (const gpu of machine.gpus) {
        const sum = draws.reduce((total, draw) => total + (draw.gpu === gpu.id ? draw.bytes : 0), 0);
        assert.ok(sum === 0 || (sum <= room.gpu(gpu) && gpu.problem === null), gpu.id);
      }
    }),
    RUNS,
  );
});

test("P6: unified memory above the GPU's cap runs on the processor, and a split never lies in one memory", () => {
  fc.assert(
    fc.property(facts, needs, (given, need) => {
      const machine = machineOf(given);
      const found = fit(need, machine, totalRoom(machine));
      if (found.kind === "short" || found.place.path === "cpu") return;
      for (const draw of found.place.draws) {
        const gpu = machine.gpus.find(({ id }) => id === draw.gpu);
        if (gpu === undefined) continue;
        assert.ok(draw.bytes <= (gpu.capBytes ?? Number.POSITIVE_INFINITY));
        assert.ok(found.place.path === "gpu" || gpu.pool !== HOST);
      }
    }),
    RUNS,
  );
});

test("P6: a reason exists exactly when no active node that is online fits", () => {
  const candidate = fc.record<Candidate>({
    nodeId: fc.constantFrom("node_a", "node_b"),
    name: fc.constant("n"),
    status: fc.constantFrom("active", "active", "draining", "retired"),
    isOnline: fc.boolean(),
    lastHeartbeatAt: fc.option(fc.constant("2026-01-01T00:00:00.000Z")),
    facts: fc.option(facts, { freq: 9 }),
    served: fc.constantFrom(
      { scene: null, models: [], active: null },
      { scene: "day", models: ["chat"], active: "day" },
    ),
    refuses: fc.option(fc.constant("a disk"), { freq: 3 }),
  });
  const asked = fc.record(
    {
      nodeId: fc.constant("node_a"),
      scene: fc.constant("day"),
      servedModel: fc.constant("chat"),
      arch: fc.constantFrom("x64", "arm64"),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.array(candidate, { maxLength: 4 }), needs, asked, (nodes, need, more) => {
      const requires = { ...need, ...more };
      const isServed = nodes.some((node) => canServe(node) && isFit(judge(requires, node)));
      const reason = blockedReason(requires, nodes);
      assert.equal(reason === undefined, isServed);
      assert.notEqual(reason, "");
    }),
    RUNS,
  );
});
