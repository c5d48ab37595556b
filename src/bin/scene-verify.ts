// SPDX-License-Identifier: Apache-2.0
// `holdfast scene verify` and `scene logs`: asks every backend and every gateway of the active scene who it is, as an operator
// would before pointing an app at the node.

import type { SceneVerified } from "../cli/programs.ts";
import { lastBytes } from "../scenes/log-tail.ts";
import type { SceneStatus } from "../scenes/operations.ts";
import { type Registry } from "../scenes/registry.ts";
import { parseAddress } from "../gateway/table.ts";
import { Failure } from "../std/errors.ts";
import { probeMarker } from "../std/marker.ts";
import { pathsIn } from "../launcher/launcher.ts";
import { launchesIn } from "../launcher/launch-files.ts";
import { nodeDirectory } from "../enrol/node-key.ts";
import path from "node:path";
import { sceneOperation, type SceneOptions, sceneRegistry } from "./scene.ts";
import { type Environment, rootFrom } from "./settings.ts";

const PROBE_TIMEOUT_MS = 10_000;

async function statusFor(options: SceneOptions, env: Environment): Promise<SceneStatus> {
  const job = { emit: () => {}, signal: new AbortController().signal };
  return (await sceneOperation({ ...options, operation: { op: "status" } }, env, job)) as SceneStatus;
}

export async function verifyScene(options: SceneOptions, env: Environment): Promise<SceneVerified> {
  const status = await statusFor(options, env);
  const registry = sceneRegistry(options, env);
  const scene = registry.scenes.get(status.active ?? "");
  if (scene === undefined) return { isExact: false, lines: ["no scene is active"] };
  const faults: string[] = [];
  const lines = [`scene    ${scene.name}`];
  for (const name of scene.models) {
    const seen = status.models.find((model) => model.name === name);
    const isHealthy = seen?.condition === "healthy";
    if (!isHealthy) faults.push(name);
    lines.push(`model    ${name}: ${isHealthy ? "exactly itself" : (seen?.why ?? "is not running")}`);
  }
  for (const [gateway, model] of scene.gateways) {
    const fault = await verifyGateway(registry, gateway, model);
    if (fault !== undefined) faults.push(gateway);
    lines.push(`gateway  ${gateway}: ${fault ?? `answers as ${model}`}`);
  }
  return { isExact: faults.length === 0, lines };
}

async function verifyGateway(registry: Registry, gateway: string, name: string): Promise<string | undefined> {
  const listen = registry.gateways.get(gateway)?.listen;
  const marker = registry.models.get(name)?.marker;
  if (listen === undefined || marker === undefined) return "is not in scenes.yaml any more";
  const { generation: _, ...exact } = marker;
  const place = parseAddress(listen) ?? { host: listen, port: 0 };
  const probed = await probeMarker(place, exact, PROBE_TIMEOUT_MS);
  if (probed.kind === "equal") return undefined;
  return probed.kind === "silent" ? `does not answer: ${probed.why}` : `answers as ${JSON.stringify(probed.found)}`;
}

export async function readSceneLogs(
  options: SceneOptions & { readonly model: string; readonly bytes: number },
  env: Environment,
): Promise<{ readonly stdout: Buffer; readonly stderr: Buffer }> {
  const { models } = await statusFor(options, env);
  const launchId = models.find(({ name }) => name === options.model)?.launchId;
  if (launchId === undefined || launchId === null)
    throw new Failure("not_found", `${options.model} was not started by Holdfast; scene status shows what was`);
  const directory = path.join(launchesIn(nodeDirectory(rootFrom(env, options.root))), launchId);
  const { stdout, stderr } = pathsIn(directory);
  return { stdout: lastBytes(stdout, options.bytes), stderr: lastBytes(stderr, options.bytes) };
}
