// SPDX-License-Identifier: Apache-2.0
// Binds a scene that somebody already runs to identities. It starts and stops nothing. Rule: it holds for every model of the
// scene, or for none, and every reason is told at once.

import { Failure } from "../std/errors.ts";
import { identityOf, readProcessStat } from "../std/process.ts";
import { ownerOf, processTree } from "../std/listeners.ts";
import { lookReady } from "./readiness.ts";
import { markerHash, type Model } from "./model.ts";
import { modelsOf, type Registry, type Scene } from "./registry.ts";
import type { OwnLaunch } from "./servers.ts";
import type { ModelRecord, SceneState } from "./state.ts";

export type Adoption = {
  readonly registry: Registry;
  readonly scene: Scene;
  readonly state: SceneState;
  /** Models that Holdfast itself launched, with or without a state that knows them. */
  readonly launches: readonly OwnLaunch[];
};

/** Throws scene_refused. */
export async function adoptScene({
  registry,
  scene,
  state,
  launches,
}: Adoption): Promise<ReadonlyMap<string, ModelRecord>> {
  const reasons: string[] = [];
  const models = new Map<string, ModelRecord>();
  const wanted = modelsOf(registry, scene);
  for (const model of wanted) {
    const found = await bind(model, state.models.get(model.name), launches);
    if (typeof found === "string") reasons.push(`${model.name}: ${found}`);
    else models.set(model.name, found);
  }
  for (const other of registry.models.values())
    if (!scene.models.includes(other.name) && !sharesPort(other, wanted) && (await serves(other)))
      reasons.push(`${other.name}, which is not of scene ${scene.name}, is serving on port ${other.place.port}`);
  if (reasons.length > 0) throw new Failure("scene_refused", `${scene.name} is not adopted: ${reasons.join("; ")}`);
  return models;
}

/** The record that it gets; else why not. */
async function bind(
  model: Model,
  known: ModelRecord | undefined,
  launches: Adoption["launches"],
): Promise<ModelRecord | string> {
  const leader = listenerLeader(model);
  if (typeof leader === "string") return leader;
  const recorded = known?.identity?.pid ?? (typeof known?.extra["pid"] === "number" ? known.extra["pid"] : undefined);
  if (known !== undefined && recorded === undefined)
    return `the record of its process is missing: ${known.legacy ?? ""}`;
  if (known?.identity === undefined && recorded !== undefined && recorded !== leader)
    return `its record says pid ${recorded}, and the one that listens belongs to group ${leader}`;
  const own = launches.find((launch) => processTree(launch.identity.pid).includes(leader));
  const identity = own === undefined ? identityOf(leader) : own.identity;
  if (identity === undefined) return "its process is gone";
  const ready = await lookReady(model, identity);
  if (ready.kind !== "ready") return `${ready.rung}: ${ready.why}`;
  const { pid: _, ...extra } = known?.extra ?? {};
  return {
    identity,
    legacy: undefined,
    port: model.place.port,
    marker: markerHash(model.marker),
    launchId: own?.launchId,
    spec: model.spec,
    extra,
  };
}

/** The leader of the group that listens on the model's port; else what is wrong. */
function listenerLeader({ place }: Model): number | string {
  const owner = ownerOf(place.host, place.port, []);
  if (owner.kind !== "other") return `nothing listens on ${place.host}:${place.port}`;
  const { pid } = owner;
  if (pid === undefined) return `port ${place.port} is held by processes that cannot be looked into`;
  const group = readProcessStat(pid)?.groupId;
  if (group === undefined) return "its process is gone";
  const leader = readProcessStat(group);
  if (leader === undefined || leader.groupId !== group)
    return `its process ${pid} is in group ${group}, which no process leads: nobody could stop it for certain`;
  return group;
}

const sharesPort = (model: Model, wanted: readonly Model[]): boolean =>
  wanted.some(({ place }) => place.port === model.place.port);

async function serves(model: Model): Promise<boolean> {
  const leader = listenerLeader(model);
  const identity = typeof leader === "number" ? identityOf(leader) : undefined;
  return identity !== undefined && (await lookReady(model, identity)).kind === "ready";
}
