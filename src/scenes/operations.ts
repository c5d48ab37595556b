// SPDX-License-Identifier: Apache-2.0
// What can be asked of a node's scenes, by name: the same for a command that acts by itself and for one that asks the agent.

import { processTree } from "../std/listeners.ts";
import type { Available } from "./memory.ts";
import type { Observed } from "./observe.ts";
import type { Plan } from "./plan.ts";
import type { Job, Scenes } from "./scenes.ts";
import type { SceneError } from "./state.ts";
import { memoryOf } from "./usage.ts";

export type Operation =
  | { readonly op: "status" | "resume" | "stop" }
  /** Stops the scene and the gateway's own process. */
  | { readonly op: "close" }
  | { readonly op: "plan" | "activate" | "adopt"; readonly scene: string };

export type ModelStatus = {
  readonly name: string;
  readonly condition: "healthy" | "unhealthy" | "dead" | "legacy";
  /** What is wrong; empty when healthy. */
  readonly why: string;
  readonly pid: number | null;
  /** With the pid, which process it is. */
  readonly startTicks: string | null;
  readonly port: number | null;
  readonly launchId: string | null;
  /** Memory of its own, in RAM and in swap. */
  readonly memory: { readonly anonymousBytes: number; readonly swappedBytes: number } | null;
};

export type SceneStatus = {
  readonly root: string;
  readonly desired: string | null;
  readonly active: string | null;
  readonly lastKnownGood: string | null;
  readonly transition: string | null;
  readonly lastError: SceneError | null;
  /** What is being done at this moment. */
  readonly busy: string | null;
  /** Why the state is not certain. */
  readonly doubt: string | null;
  readonly models: readonly ModelStatus[];
  readonly gateways: readonly GatewayStatus[];
  readonly availableMemory: Available | null;
  /** Of the agent that answers; null when the command looked by itself. */
  readonly agentPid: number | null;
};

export type GatewayStatus = {
  readonly name: string;
  readonly listen: string;
  readonly shows: "serving" | "holding" | "refusing";
  readonly model: string | null;
  readonly why: string | null;
};

export type OperationContext = {
  readonly root: string;
  readonly scenes: Scenes;
  readonly available: () => Available | undefined;
  readonly agentPid: number | null;
};

export type OperationResult = SceneStatus | Plan | { readonly text: string };

export async function runOperation(
  context: OperationContext,
  operation: Operation,
  job: Job,
): Promise<OperationResult> {
  const { scenes } = context;
  switch (operation.op) {
    case "status":
      return statusOf(context);
    case "plan":
      return scenes.plan(operation.scene);
    case "activate":
      return scenes.activate(operation.scene, job);
    case "adopt":
      await scenes.adopt(operation.scene);
      return { text: `${operation.scene} is adopted` };
    case "resume":
      return { text: await scenes.resume(job) };
    case "stop":
      await scenes.stop(job);
      return { text: "stopped" };
    case "close":
      await scenes.stop(job);
      await scenes.closeGateways();
      return { text: "stopped, with the gateway" };
    default:
      return operation satisfies never;
  }
}

/** Of one moment: what changed while the models were asked is asked again. */
export async function statusOf(context: OperationContext): Promise<SceneStatus> {
  const { ledger } = context.scenes;
  for (let looks = 1; ; looks++) {
    const before = ledger.state;
    const observed = await context.scenes.observe();
    if (ledger.state === before || looks === LOOKS_MAX) return statusFrom(context, observed);
  }
}

/** A switch that goes on changes the state at each of its steps. */
const LOOKS_MAX = 5;

/** observed: what was seen a moment ago. It asks nobody. */
export function statusFrom(
  { root, scenes, available, agentPid }: OperationContext,
  observed: readonly Observed[],
): SceneStatus {
  const { desired, active, lastKnownGood, transition, lastError } = scenes.state;
  const models = observed.map(({ name, condition, why, record }): ModelStatus => {
    const { identity, port, launchId } = record;
    const isRunning = identity !== undefined && condition !== "dead";
    const used = isRunning ? memoryOf(processTree(identity.pid)) : undefined;
    return {
      name,
      condition,
      why,
      pid: isRunning ? identity.pid : null,
      startTicks: isRunning ? identity.startTicks : null,
      port: port ?? null,
      launchId: launchId ?? null,
      memory: used === undefined ? null : { anonymousBytes: used.anonymous, swappedBytes: used.swapped },
    };
  });
  const gateways = scenes.fronts().map(
    ({ gateway, shows }): GatewayStatus => ({
      name: gateway.name,
      listen: gateway.listen,
      shows: shows.kind,
      model: shows.kind === "serving" ? shows.model.name : null,
      why: shows.kind === "serving" ? null : shows.why,
    }),
  );
  return {
    root,
    desired,
    active,
    lastKnownGood,
    transition,
    lastError,
    busy: scenes.busy ?? null,
    doubt: scenes.ledger.doubt ?? null,
    models,
    gateways,
    availableMemory: available() ?? null,
    agentPid,
  };
}
