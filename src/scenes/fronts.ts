// SPDX-License-Identifier: Apache-2.0
// What each gateway address shows: a proved model, a wait, or a refusal with its reason. Pure.

import type { Identity } from "../std/process.ts";
import type { Model } from "./model.ts";
import type { Gateway, Registry, Scene } from "./registry.ts";
import type { SceneState } from "./state.ts";

export type Front = {
  readonly gateway: Gateway;
  readonly shows:
    | { readonly kind: "serving"; readonly model: Model; readonly identity: Identity }
    | { readonly kind: "holding"; readonly why: string }
    | { readonly kind: "refusing"; readonly why: string };
};

export type Traffic = {
  readonly open: number;
  readonly total: number;
  readonly held: number;
  readonly refused: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
};

/** Whoever stands at the gateways: their own process. */
export type GatewayPort = {
  /** Resolves once every address shows it. Throws when one cannot be listened on. */
  readonly set: (fronts: readonly Front[]) => Promise<void>;
  /** Resolves when what went on with the former model has ended, or its drain is over. */
  readonly drained: (signal: AbortSignal) => Promise<void>;
  /** Why these addresses (HOST:PORT) could not be listened on. */
  readonly problems: (listens: readonly string[]) => Promise<readonly string[]>;
  readonly isUp: () => Promise<boolean>;
  /** Ends the process; the next table starts another. */
  readonly close: () => Promise<void>;
  /** By HOST:PORT; empty when it does not answer. */
  readonly traffic: () => Promise<ReadonlyMap<string, Traffic>>;
};

export function frontsAll(registry: Registry, shows: Front["shows"]): readonly Front[] {
  return [...registry.gateways.values()].map((gateway) => ({ gateway, shows }));
}

/** While models of a scene are started: what is kept is served on. */
export function frontsDuring(
  registry: Registry,
  scene: Scene,
  state: SceneState,
  keep: readonly string[],
): readonly Front[] {
  const why = `the scene is switching to ${scene.name}`;
  return frontsOf(registry, scene, state).map((front) => {
    const { shows, gateway } = front;
    const isKept = shows.kind === "serving" && keep.includes(shows.model.name);
    return isKept || !scene.gateways.has(gateway.name) ? front : { gateway, shows: { kind: "holding", why } };
  });
}

/** unhealthy: models that are not to be served now, with why. */
export function frontsOf(
  registry: Registry,
  scene: Scene,
  state: SceneState,
  unhealthy: ReadonlyMap<string, string> = new Map(),
): readonly Front[] {
  return [...registry.gateways.values()].map((gateway): Front => {
    const name = scene.gateways.get(gateway.name);
    if (name === undefined)
      return { gateway, shows: { kind: "refusing", why: `scene ${scene.name} has no model behind ${gateway.name}` } };
    const model = registry.models.get(name);
    const identity = state.models.get(name)?.identity;
    const why = unhealthy.get(name);
    if (model === undefined || identity === undefined || why !== undefined)
      return {
        gateway,
        shows: { kind: "refusing", why: `${name} is not healthy${why === undefined ? "" : `: ${why}`}` },
      };
    return { gateway, shows: { kind: "serving", model, identity } };
  });
}
