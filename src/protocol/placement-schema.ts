// SPDX-License-Identifier: Apache-2.0
// What crosses HTTP about placement: what a job or a model needs, and the answer to why a job is where it is.

import Type, { type Static } from "typebox";
import { bytes, exact, id, name, nullable, time } from "./common-schema.ts";
import { jobStates } from "./job.ts";
import { nodeStatuses } from "./node.ts";
import { verdictKinds } from "./placement-verdict.ts";
import { paths } from "./placement.ts";
import { sceneName } from "./scene-schema.ts";

const need = (minimum: number, description: string) =>
  Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description });

const path = Type.Enum([...paths]);

export const needs = exact({
  memoryBytes: Type.Optional(need(0, "memory of the machine, on whichever path")),
  needFullBytes: Type.Optional(need(1, "memory beside a GPU when all of it runs there")),
  needHostBytes: Type.Optional(need(1, "how much of needFullBytes may lie in the machine's memory: the split path")),
  needMinBytes: Type.Optional(need(0, "memory of the machine on the processor alone; default: needFullBytes")),
  paths: Type.Optional(
    Type.Array(path, {
      minItems: 1,
      maxItems: 3,
      uniqueItems: true,
      description: "allowed ones; default: all described",
    }),
  ),
  gpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 64, description: "GPUs it can spread over; default 1" })),
  arch: Type.Optional(Type.Enum(["x64", "arm64"])),
});

export const requirements = exact({
  ...needs.properties,
  nodeId: Type.Optional(id("node")),
  model: Type.Optional(
    Type.Unsafe<string>({ ...name, description: "a registered model: its needs are added to these" }),
  ),
  scene: Type.Optional(
    Type.Unsafe<string>({
      ...sceneName,
      description: "only where this scene is active and all its models are verified now",
    }),
  ),
  servedModel: Type.Optional(
    Type.Unsafe<string>({ ...sceneName, description: "only where a scene's model of this name is verified now" }),
  ),
});

const whyNode = exact({
  nodeId: id("node"),
  name,
  status: Type.Enum([...nodeStatuses]),
  online: Type.Boolean(),
  lastHeartbeatAt: nullable(time),
  verdict: Type.Enum([...verdictKinds]),
  /** The path it runs on there; null where it does not fit. */
  path: nullable(path),
  /** Whether its next claim could take it. */
  startsNow: Type.Boolean(),
  /** Why not, or why no faster path; empty when there is nothing to say. */
  text: Type.String(),
});
export type WhyNode = Static<typeof whyNode>;

const whyHolder = exact({
  jobId: id("job"),
  nodeId: id("node"),
  nodeName: name,
  state: Type.Enum([...jobStates]),
  /** What it asked for, all pools together. */
  bytes,
});
export type WhyHolder = Static<typeof whyHolder>;

export const whyKinds = ["no-node", "away", "refused", "waiting", "scheduled", "held", "ended"] as const;

export const jobWhy = exact({
  jobId: id("job"),
  state: Type.Enum([...jobStates]),
  answer: Type.Enum([...whyKinds]),
  text: Type.String(),
  /** How many jobs are before it by priority and age; null unless it waits. Projects take turns, so it may come sooner. */
  position: nullable(Type.Integer({ minimum: 0 })),
  /** Whether more jobs were before it than are counted. */
  positionIsLeast: Type.Boolean(),
  /** The node that keeps room for it. */
  reservedOn: nullable(exact({ nodeId: id("node"), name })),
  nodes: Type.Array(whyNode),
  /** Live leases on the nodes that fit, the largest first. */
  holders: Type.Array(whyHolder),
});
export type JobWhy = Static<typeof jobWhy>;
