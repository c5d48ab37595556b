// SPDX-License-Identifier: Apache-2.0
// A profile: what contradicts itself is refused all at once, and a model's needs fill what a job leaves out.

import assert from "node:assert/strict";
import { test } from "node:test";
import { allowedPaths, demandOf, needFaults, requirementWith } from "./placement.ts";

test("the paths follow from the needs, and are always the fastest first", () => {
  assert.deepEqual(allowedPaths({ memoryBytes: 1 }), ["cpu"]);
  assert.deepEqual(allowedPaths({ needFullBytes: 2 }), ["gpu", "cpu"]);
  assert.deepEqual(allowedPaths({ needFullBytes: 2, needHostBytes: 1 }), ["gpu", "split", "cpu"]);
  assert.deepEqual(allowedPaths({ needFullBytes: 2, paths: ["cpu", "gpu"] }), ["gpu", "cpu"]);
});

test("each path asks its own of the two memories", () => {
  const needs = { memoryBytes: 1, needFullBytes: 10, needHostBytes: 4, needMinBytes: 12 };
  assert.deepEqual(demandOf(needs, "gpu"), { hostBytes: 1, gpuBytes: 10 });
  assert.deepEqual(demandOf(needs, "split"), { hostBytes: 5, gpuBytes: 6 });
  assert.deepEqual(demandOf(needs, "cpu"), { hostBytes: 13, gpuBytes: 0 });
  assert.deepEqual(demandOf({ needFullBytes: 10 }, "cpu"), { hostBytes: 10, gpuBytes: 0 });
});

test("a profile that contradicts itself is refused, all of it at once", () => {
  const fields = (needs: Parameters<typeof needFaults>[0]): readonly string[] =>
    needFaults(needs).map(({ field }) => field);
  assert.deepEqual(fields({ needHostBytes: 1, needMinBytes: 1, paths: ["gpu"], gpus: 1 }), [
    "needHostBytes",
    "needMinBytes",
    "paths",
    "gpus",
  ]);
  assert.deepEqual(fields({ needFullBytes: 4, needHostBytes: 4 }), ["needHostBytes"]);
  assert.deepEqual(fields({ needFullBytes: 4, needHostBytes: 1, needMinBytes: 1, paths: ["gpu"] }), [
    "needHostBytes",
    "needMinBytes",
  ]);
  assert.deepEqual(fields({ needFullBytes: 4, paths: ["split"] }), ["paths"]);
  assert.deepEqual(fields({ needFullBytes: 4, gpus: 2, paths: ["cpu"] }), ["gpus"]);
  assert.deepEqual(fields({ needFullBytes: 4, needHostBytes: 1, needMinBytes: 9, gpus: 2 }), []);
});

test("a model's needs fill what a job leaves out; the larger memory counts; a contradiction is undefined", () => {
  const model = { memoryBytes: 2, needFullBytes: 10, needHostBytes: 4, needMinBytes: 12, arch: "x64" } as const;
  assert.deepEqual(requirementWith({ model: "m" }, model), { model: "m", ...model });
  assert.deepEqual(requirementWith({ memoryBytes: 5, needFullBytes: 8, needHostBytes: 1 }, model), {
    ...model,
    memoryBytes: 5,
    needHostBytes: 1,
  });
  assert.deepEqual(requirementWith({ paths: ["gpu"] }, model), {
    memoryBytes: 2,
    needFullBytes: 10,
    arch: "x64",
    paths: ["gpu"],
  });
  assert.equal(requirementWith({ arch: "arm64" }, model), undefined);
  assert.equal(requirementWith({ paths: ["cpu"] }, { needFullBytes: 1, paths: ["gpu"] }), undefined);
  assert.deepEqual(requirementWith({}, {}), {});
});
