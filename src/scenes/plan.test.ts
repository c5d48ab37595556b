// SPDX-License-Identifier: Apache-2.0
// Plans as properties: whatever is there, nothing is touched that a plan does not list, and its order is safe.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type PlanInput, planSwitch, type Running, type Wanted } from "./plan.ts";

const NAMES = ["a", "b", "c", "d", "e"];
const name = fc.constantFrom(...NAMES);
const port = fc.integer({ min: 1, max: 4 });
const spec = fc.constantFrom("s1", "s2");
const need = fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined });

const wanted: fc.Arbitrary<Wanted> = fc.record({ name, spec, port, needBytes: need });
const running: fc.Arbitrary<Running> = fc.record({
  name,
  spec: fc.option(spec, { nil: undefined }),
  port: fc.option(port, { nil: undefined }),
  condition: fc.constantFrom("healthy", "unhealthy", "dead", "legacy"),
  why: fc.constant("why"),
  usedBytes: need,
});
const input: fc.Arbitrary<PlanInput> = fc.record({
  scene: fc.constant("target"),
  from: fc.constantFrom(null, "before"),
  wanted: fc.uniqueArray(wanted, { minLength: 1, selector: (each) => each.name }),
  running: fc.uniqueArray(running, { selector: (each) => each.name }),
  strangers: fc.array(fc.tuple(port, fc.constant("stranger (pid 7)"))).map((pairs) => new Map(pairs)),
  memory: fc.record({ availableBytes: fc.integer({ min: 0, max: 300 }), floorBytes: fc.integer({ min: 0, max: 50 }) }),
});

test("every model of the target is kept or started, everything else that runs is stopped, and nothing is both kept and touched", () => {
  fc.assert(
    fc.property(input, (given) => {
      const { keep, start, stop } = planSwitch(given);
      assert.deepEqual([...keep, ...start].toSorted(), given.wanted.map((each) => each.name).toSorted());
      assert.ok(keep.every((each) => !stop.includes(each) && !start.includes(each)));
      for (const each of given.running)
        assert.equal(stop.includes(each.name), each.condition !== "dead" && !keep.includes(each.name));
      for (const each of keep) {
        const runs = given.running.find((one) => one.name === each);
        const wants = given.wanted.find((one) => one.name === each);
        assert.deepEqual([runs?.condition, runs?.spec], ["healthy", wants?.spec]);
      }
    }),
  );
});

test("the steps are exactly what the plan lists; without both at once a stop never comes after a start, with it never before the flip", () => {
  fc.assert(
    fc.property(input, (given) => {
      const { steps, start, stop, forget, isMakeBeforeBreak } = planSwitch(given);
      const of = (kind: "start" | "stop" | "forget") =>
        steps.flatMap((step) => (step.kind === kind ? [step.model] : []));
      assert.deepEqual([of("start"), of("stop"), of("forget")], [start, stop, forget]);
      const kinds = steps.map(({ kind }) => kind);
      const flip = kinds.lastIndexOf("flip");
      assert.equal(kinds.filter((kind) => kind === "flip").length, 1);
      assert.ok(kinds.lastIndexOf("start") < flip);
      if (isMakeBeforeBreak) assert.ok(kinds.indexOf("stop") > flip && !kinds.includes("hold"));
      else {
        assert.equal(flip, kinds.length - 1);
        if (stop.length > 0 && start.length > 0) assert.ok(kinds.lastIndexOf("stop") < kinds.indexOf("start"));
        if (stop.length + start.length > 0) assert.equal(kinds[forget.length], "hold");
      }
    }),
  );
});

test("both run at once only when no port is needed twice and the memory of both is known to be there", () => {
  fc.assert(
    fc.property(input, (given) => {
      const { start, stop, isMakeBeforeBreak, memory } = planSwitch(given);
      if (!isMakeBeforeBreak) return;
      const ports = given.wanted.filter((each) => start.includes(each.name)).map((each) => each.port);
      for (const each of given.running.filter((one) => stop.includes(one.name)))
        assert.ok(each.port !== undefined && !ports.includes(each.port));
      assert.deepEqual(memory.unknown, []);
      assert.ok(memory.neededBytes + memory.floorBytes <= memory.availableBytes);
    }),
  );
});

const base: PlanInput = {
  scene: "target",
  from: null,
  wanted: [{ name: "a", spec: "s", port: 1, needBytes: 60 }],
  running: [],
  strangers: new Map(),
  memory: { availableBytes: 100, floorBytes: 40 },
};

test("a model that fits to the byte fits, and one byte less is refused with the sums in bytes", () => {
  assert.deepEqual(planSwitch(base).problems, []);
  const short = planSwitch({ ...base, memory: { availableBytes: 99, floorBytes: 40 } });
  assert.match(
    short.problems[0] ?? "",
    /60 B \(60 bytes\) are needed, 99 B .* less the floor of 40 B .*: 1 B \(1 bytes\) are missing/,
  );
  const freed: Running = { name: "b", spec: "s", port: 2, condition: "healthy", why: "", usedBytes: 1 };
  assert.deepEqual(
    planSwitch({ ...base, running: [freed], memory: { availableBytes: 99, floorBytes: 40 } }).problems,
    [],
  );
});

test("a stranger on a port and a process that nothing proves are in the way, by name; one of ours that goes is not", () => {
  const strangers = new Map([[1, "sshd (pid 9)"]]);
  assert.match(planSwitch({ ...base, strangers }).problems[0] ?? "", /port 1 of a is held by sshd \(pid 9\)/);
  const ours: Running = { name: "b", spec: "s", port: 1, condition: "unhealthy", why: "", usedBytes: 0 };
  assert.deepEqual(planSwitch({ ...base, strangers, running: [ours] }).problems, []);
  const legacy: Running = { ...ours, port: 3, condition: "legacy", why: "its record names pid 5 without the boot" };
  assert.match(
    planSwitch({ ...base, running: [legacy] }).problems[0] ?? "",
    /b may run, .* without the boot; stop it yourself/,
  );
});
