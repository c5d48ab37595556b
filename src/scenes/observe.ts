// SPDX-License-Identifier: Apache-2.0
// What of the state is true at this moment: for each recorded model, whether its very process runs and is ready; for each port
// that is wanted, who else holds it. It changes nothing.

import fs from "node:fs";
import path from "node:path";
import { describeProcess, ownerOf, processTree } from "../std/listeners.ts";
import { isAlive } from "../std/process.ts";
import type { Running, Wanted } from "./plan.ts";
import { lookReady } from "./readiness.ts";
import type { Model } from "./model.ts";
import { MODEL_FILE } from "./model-file.ts";
import type { Registry } from "./registry.ts";
import type { ModelRecord, SceneState } from "./state.ts";
import { memoryOf } from "./usage.ts";

export type Observed = Running & { readonly record: ModelRecord };

export async function observeAll(state: SceneState, registry: Registry): Promise<readonly Observed[]> {
  return Promise.all([...state.models].map(([name, record]) => observe(name, record, registry.models.get(name))));
}

async function observe(name: string, record: ModelRecord, model: Model | undefined): Promise<Observed> {
  const { identity, spec, port } = record;
  const of = (condition: Running["condition"], why: string): Observed => {
    const used = identity !== undefined && condition !== "dead" ? memoryOf(processTree(identity.pid)) : undefined;
    const usedBytes = used === undefined ? undefined : used.anonymous + used.swapped;
    return { name, spec, port, condition, why, usedBytes, record };
  };
  if (record.legacy !== undefined) return of("legacy", record.legacy);
  if (identity === undefined || !isAlive(identity)) return of("dead", "its process is gone");
  if (model === undefined) return of("unhealthy", "it is not in scenes.yaml any more");
  const ready = await lookReady(model, identity);
  return ready.kind === "ready" ? of("healthy", "") : of("unhealthy", `${ready.rung}: ${ready.why}`);
}

/** Ports of these models that are held by processes that are not ours. */
export function strangersOn(models: readonly Model[], observed: readonly Observed[]): ReadonlyMap<number, string> {
  const ours = observed.flatMap(({ record, condition }) =>
    record.identity !== undefined && condition !== "dead" ? processTree(record.identity.pid) : [],
  );
  return new Map(
    models.flatMap(({ place }) => {
      const owner = ownerOf(place.host, place.port, ours);
      if (owner.kind !== "other") return [];
      const who = owner.pid === undefined ? "a process of another account" : describeProcess(owner.pid);
      return [[place.port, who] as const];
    }),
  );
}

/** What a model needs: as declared, as it was seen before, or what its files of weights weigh. */
export function wantedOf(model: Model, learned: ReadonlyMap<string, number>): Wanted {
  const needBytes = model.memoryBytes ?? learned.get(model.spec) ?? weightsOf(model);
  return { name: model.name, spec: model.spec, port: model.place.port, needBytes };
}

function weightsOf({ argv, workingDirectory }: Model): number | undefined {
  const sizes = argv.flatMap((argument) => {
    const file = MODEL_FILE.exec(argument)?.[1];
    if (file === undefined) return [];
    return fs.statSync(path.resolve(workingDirectory ?? "/", file), { throwIfNoEntry: false })?.size ?? [];
  });
  return sizes.length === 0 ? undefined : sizes.reduce((total, size) => total + size, 0);
}
