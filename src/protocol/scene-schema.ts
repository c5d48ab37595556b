// SPDX-License-Identifier: Apache-2.0
// What a node tells of its scenes, and how a person asks for one from afar. The node decides, and says why not.

import Type, { type Static } from "typebox";
import { bytes, counter, exact, nullable } from "./common-schema.ts";

export const sceneName = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$",
  description: "1 to 40 letters, digits, dots, dashes and underscores",
});
const text = Type.String({ maxLength: 1024 });

const sceneModel = exact({
  name: sceneName,
  /** healthy: its very process told its exact marker. */
  condition: Type.Enum(["healthy", "unhealthy", "dead", "legacy"]),
  /** What is wrong; empty when healthy. */
  why: text,
  /** What it must say about itself, as JSON. */
  marker: text,
  /** Of the shim that leads its session. */
  pid: nullable(Type.Integer({ minimum: 0 })),
  /** When its process started, in clock ticks since the boot: with the pid, which process it is. */
  startTicks: nullable(counter),
  port: nullable(Type.Integer({ minimum: 0, maximum: 65_535 })),
  /** Memory of its own: in RAM, and in swap. */
  anonymousBytes: nullable(bytes),
  swappedBytes: nullable(bytes),
});

const sceneGateway = exact({
  name: sceneName,
  listen: Type.String({ maxLength: 256 }),
  shows: Type.Enum(["serving", "holding", "refusing"]),
  model: nullable(sceneName),
  why: nullable(text),
  /** Since its process started; null when it does not answer. */
  traffic: nullable(
    exact({
      open: Type.Integer({ minimum: 0 }),
      total: Type.Integer({ minimum: 0 }),
      held: Type.Integer({ minimum: 0 }),
      refused: Type.Integer({ minimum: 0 }),
      bytesIn: bytes,
      bytesOut: bytes,
    }),
  ),
});

/** A model in the operation that goes on, or went on last: how far it is, and since when. */
const sceneProgress = exact({
  model: sceneName,
  phase: Type.Enum(["waiting", "starting", "loading", "healthy", "stopping", "stopped", "failed", "kept"]),
  /** The rung of readiness that it stands on, and why it is no further. */
  text,
  /** Milliseconds since the operation began. */
  ms: Type.Integer({ minimum: 0 }),
});

/** How far a wish from afar is. */
const wishState = exact({
  number: counter,
  state: Type.Enum(["under-way", "done", "refused"]),
  text,
});

export const sceneReport = exact({
  /** Every model of it reported its exact marker when it became active. */
  active: nullable(sceneName),
  desired: nullable(sceneName),
  transition: nullable(sceneName),
  lastError: nullable(text),
  busy: nullable(text),
  /** Why nothing is certain: the registry or the state cannot be read. */
  doubt: nullable(text),
  /** What can be asked for. */
  scenes: Type.Array(exact({ name: sceneName, models: Type.Array(sceneName, { maxItems: 64 }) }), { maxItems: 64 }),
  models: Type.Array(sceneModel, { maxItems: 128 }),
  gateways: Type.Array(sceneGateway, { maxItems: 64 }),
  progress: Type.Array(sceneProgress, { maxItems: 128 }),
  availableBytes: nullable(bytes),
  floorBytes: nullable(bytes),
  wish: nullable(wishState),
});
export type SceneReport = Static<typeof sceneReport>;

/** Asked for by a person; a higher number takes the place of a lower one. null: no scene. */
export const sceneWish = exact({ number: counter, scene: nullable(sceneName) });
export type SceneWish = Static<typeof sceneWish>;
