// SPDX-License-Identifier: Apache-2.0
// What the page works out of a report by itself, without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SceneReport } from "../../src/protocol/scene-schema.ts";
import { withPoint, type MemoryPoint } from "../../web/src/scenes/memory-history.ts";
import { clockAt } from "../../web/src/scenes/operation-clock.ts";
import { previewOf } from "../../web/src/scenes/switch-preview.ts";
import { longScenes } from "./scene-reports.ts";

test("a preview keeps what is healthy under its name, starts again what is not, and clears nothing that has ended", () => {
  const one = longScenes.models[0];
  assert.ok(one !== undefined);
  const bytes = { anonymousBytes: 5, swappedBytes: 2 };
  const models = [
    { ...one, ...bytes, name: "stays", condition: "healthy" as const },
    { ...one, ...bytes, name: "sick", condition: "unhealthy" as const },
    { ...one, ...bytes, name: "dead", condition: "dead" as const },
    { ...one, ...bytes, anonymousBytes: null, name: "other", condition: "healthy" as const },
  ];
  assert.deepEqual(previewOf({ models }, ["stays", "sick", "dead", "new"]), {
    stays: ["stays"],
    stops: ["sick", "other"],
    starts: ["sick", "dead", "new"],
    freedBytes: 9,
  });
});

const at = (busy: string | null, ...all: number[]): SceneReport => ({
  ...longScenes,
  busy,
  progress: all.map((ms) => ({ model: "m", phase: "loading", text: "", ms })),
});

test("the seconds of a switch count from its beginning, also while nothing is told, and anew for the next one", () => {
  const idle = clockAt(undefined, at(null, 9_000), 1_000);
  assert.equal(idle.began, undefined);
  const first = clockAt(idle, at("a switch", 0), 5_300);
  assert.deepEqual(first.began, { atMs: 5_300, isExact: true });
  const later = clockAt(first, at("a switch", 0, 1_900), 7_000);
  assert.deepEqual(later.began, { atMs: 5_100, isExact: true });
  // A report that tells nothing new does not move it.
  assert.deepEqual(clockAt(later, at("a switch", 1_900), 60_000).began, { atMs: 5_100, isExact: true });
  assert.deepEqual(clockAt(later, at("a switch", 10), 90_000).began, { atMs: 89_990, isExact: true });
  // In the middle of one it may have begun earlier.
  assert.deepEqual(clockAt(undefined, at("a switch", 1_900), 60_000).began, { atMs: 58_100, isExact: false });
});

test("the memory of the last minutes has no line where nobody looked, and no end", () => {
  const point = (seconds: number): MemoryPoint => ({ at: seconds * 1000, availableBytes: seconds, floorBytes: 1 });
  const add = (points: readonly MemoryPoint[], seconds: number) => withPoint(points, point(seconds));
  const two = [10, 15].reduce(add, []);
  assert.equal(withPoint(two, point(15)), two);
  const gap = add(two, 100);
  assert.deepEqual(
    gap.map(({ availableBytes }) => availableBytes),
    [10, 15, null, 100],
  );
  assert.deepEqual(
    add(gap, 650).map(({ at }) => at / 1000),
    [100, 100.001, 650],
  );
  const many = Array.from({ length: 3_000 }, (_, index) => 1 + index / 10).reduce(add, []);
  assert.equal(many.length, 1_200);
});
