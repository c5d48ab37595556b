// SPDX-License-Identifier: Apache-2.0
// The unit of an agent, and whether an agent that starts now would touch the scene that runs.

import fs from "node:fs";
import path from "node:path";
import { type AgentUnit, agentUnit } from "../enrol/agent-unit.ts";
import type { SceneStatus } from "../scenes/operations.ts";
import { FILE_NAME } from "../scenes/registry.ts";
import { messageOf } from "../std/errors.ts";
import { sceneOperation } from "./scene.ts";
import type { Environment } from "./settings.ts";

export async function agentUnitOf(
  options: AgentUnit,
  env: Environment,
): Promise<{ readonly text: string; readonly warnings: readonly string[] }> {
  return { text: agentUnit(options), warnings: await warningsFor(options.root, env) };
}

async function warningsFor(root: string, env: Environment): Promise<readonly string[]> {
  if (!fs.existsSync(path.join(root, FILE_NAME))) return [];
  try {
    const job = { emit: () => {}, signal: new AbortController().signal };
    const status = (await sceneOperation({ root, operation: { op: "status" } }, env, job)) as SceneStatus;
    const bad = status.models.filter(({ condition }) => condition !== "healthy");
    const changes = bad.map(({ name, why }) => `an agent that starts now would restart ${name}: ${why}`);
    if (status.transition !== null) changes.push(`a switch to ${status.transition} is not over: holdfast scene resume`);
    if (status.desired !== status.active)
      changes.push(`${status.desired ?? "no scene"} is wished for, ${status.active ?? "none"} is active`);
    return status.active === null && status.models.length === 0
      ? [...changes, "no scene is active: adopt the one that runs first (holdfast scene adopt NAME), or activate one"]
      : changes;
  } catch (error) {
    return [`the scenes of ${root} could not be looked at: ${messageOf(error)}`];
  }
}
