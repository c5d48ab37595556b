// SPDX-License-Identifier: Apache-2.0
// The units of a node for this installation, and whether an agent that starts now would touch the scene that runs.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Programs } from "../cli/programs.ts";
import { agentUnit } from "../enrol/agent-unit.ts";
import { launchSocketUnit, launchUnit } from "../enrol/launch-unit.ts";
import { shimPathFor } from "../launcher/shim.ts";
import type { SceneStatus } from "../scenes/operations.ts";
import { FILE_NAME } from "../scenes/registry.ts";
import { messageOf } from "../std/errors.ts";
import { sceneOperation } from "./scene.ts";
import { type Environment, rootFrom } from "./settings.ts";

const SYSTEM_ROOT = "/var/lib/holdfast";

export async function agentUnitOf(
  { part, ...options }: Parameters<Programs["agentUnit"]>[0],
  env: Environment,
): Promise<{ readonly text: string; readonly warnings: readonly string[] }> {
  const unit = {
    ...options,
    node: process.execPath,
    program: fileURLToPath(new URL("holdfast.js", import.meta.url)),
    shim: shimPathFor(process.arch),
    root: options.layout === "system" ? (options.root ?? SYSTEM_ROOT) : rootFrom(env, options.root),
  };
  if (part === "launch-socket") return { text: launchSocketUnit(unit), warnings: [] };
  if (part === "launch") return { text: launchUnit(unit), warnings: [] };
  return { text: agentUnit(unit), warnings: await warningsFor(unit.root, env) };
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
