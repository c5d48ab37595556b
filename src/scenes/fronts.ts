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

/** Whoever stands at the gateways: their own process. */
export type GatewayPort = {
  /** Resolves once every address shows it. Throws when one cannot be listened on. */
  readonly set: (fronts: readonly Front[]) => Promise<void>;
};

/** A node without gateways. */
export const NO_GATEWAYS: GatewayPort = { set: () => Promise.resolve() };

export function frontsAll(registry: Registry, shows: Front["shows"]): readonly Front[] {
  return [...registry.gateways.values()].map((gateway) => ({ gateway, shows }));
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
