// SPDX-License-Identifier: Apache-2.0
// What a switch would do, as far as the last report tells, pure. The node plans anew and decides: only it knows whether what
// scenes.yaml says of a model has changed, and what a model needs.

import type { SceneReport } from "../../../src/protocol/scene-schema.ts";

export type SwitchPreview = {
  readonly stays: readonly string[];
  readonly stops: readonly string[];
  readonly starts: readonly string[];
  /** What the stops give back, as far as it is known. */
  readonly freedBytes: number;
};

export function previewOf({ models }: Pick<SceneReport, "models">, wanted: readonly string[]): SwitchPreview {
  const healthy = new Set(models.filter(({ condition }) => condition === "healthy").map(({ name }) => name));
  const stays = wanted.filter((name) => healthy.has(name));
  const stopped = models.filter(({ name, condition }) => condition !== "dead" && !stays.includes(name));
  return {
    stays,
    stops: stopped.map(({ name }) => name),
    starts: wanted.filter((name) => !healthy.has(name)),
    freedBytes: stopped.reduce(
      (sum, { anonymousBytes, swappedBytes }) => sum + (anonymousBytes ?? 0) + (swappedBytes ?? 0),
      0,
    ),
  };
}

/** Right after a switch a node tells its active scene before it has looked at the servers again. */
export function isUntold({ active, models }: Pick<SceneReport, "active" | "models">): boolean {
  return active !== null && models.length === 0;
}
