// SPDX-License-Identifier: Apache-2.0
// The scenes of a node as they are told to a controller: bounded, without a secret, and never failing for what cannot be read.

import type { SceneReport, SceneWish } from "../protocol/scene-schema.ts";
import { messageOf } from "../std/errors.ts";
import type { Traffic } from "./fronts.ts";
import type { Observed } from "./observe.ts";
import { type OperationContext, statusFrom } from "./operations.ts";
import type { Registry } from "./registry.ts";

export type WishState = NonNullable<SceneReport["wish"]>;

export type Progress = SceneReport["progress"][number];

const TEXT_MAX = 1024;
const SCENES_MAX = 64;
const MODELS_MAX = 128;

const short = (text: string): string => text.slice(0, TEXT_MAX);

export type ReportOptions = {
  readonly context: OperationContext;
  readonly registry: () => Registry;
  /** As the keeper saw it last. */
  readonly observed: readonly Observed[];
  readonly traffic: ReadonlyMap<string, Traffic>;
  readonly progress: readonly Progress[];
  readonly floorBytes: () => number | undefined;
  readonly wish: WishState | null;
};

/** Asks no model: a heartbeat waits for nobody. */
export function reportOf(options: ReportOptions): SceneReport {
  const { context, registry, observed, traffic, progress, floorBytes, wish } = options;
  const { desired, active, transition, lastError } = context.scenes.state;
  const base: SceneReport = {
    active,
    desired,
    transition,
    lastError: lastError === null ? null : short(lastError.error),
    busy: context.scenes.busy ?? null,
    doubt: context.scenes.ledger.doubt ?? null,
    scenes: [],
    models: [],
    gateways: [],
    progress: progress
      .slice(0, MODELS_MAX)
      .map((each) => ({ ...each, text: short(each.text), ms: Math.round(each.ms) })),
    availableBytes: context.available()?.bytes ?? null,
    floorBytes: floorBytes() ?? null,
    wish,
  };
  try {
    const known = registry();
    const { models, gateways } = statusFrom(context, observed);
    return {
      ...base,
      scenes: [...known.scenes.values()]
        .slice(0, SCENES_MAX)
        .map((scene) => ({ name: scene.name, models: [...scene.models] })),
      models: models.slice(0, MODELS_MAX).map((model) => ({
        name: model.name,
        condition: model.condition,
        why: short(model.why),
        marker: short(JSON.stringify(known.models.get(model.name)?.marker.value ?? null)),
        pid: model.pid,
        startTicks: model.startTicks,
        port: model.port,
        anonymousBytes: model.memory?.anonymousBytes ?? null,
        swappedBytes: model.memory?.swappedBytes ?? null,
      })),
      gateways: gateways.slice(0, SCENES_MAX).map((gateway) => ({
        ...gateway,
        traffic: traffic.get(gateway.listen) ?? null,
        why: gateway.why === null ? null : short(gateway.why),
      })),
    };
  } catch (error) {
    return { ...base, doubt: short(messageOf(error)) };
  }
}

/** A wish that was acted on before is not acted on again, in no life. */
export function isNewWish(wish: SceneWish, handled: unknown): boolean {
  return BigInt(wish.number) > (typeof handled === "string" && /^\d{1,18}$/.test(handled) ? BigInt(handled) : 0n);
}
