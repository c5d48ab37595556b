// SPDX-License-Identifier: Apache-2.0
// `holdfast scene …` on this machine: asks the running agent, and acts by itself when none runs. Whoever acts holds the lock of
// the scenes, so there is one writer.

import path from "node:path";
import type { GatewayPort } from "../scenes/fronts.ts";
import { LearnedNeeds } from "../scenes/learned.ts";
import { ModelFiles } from "../scenes/model-file.ts";
import { type Available, availableMemory, type MemoryFiles } from "../scenes/memory.ts";
import { type Operation, type OperationContext, type OperationResult, runOperation } from "../scenes/operations.ts";
import { readRegistry, type Registry } from "../scenes/registry.ts";
import { type Job, Scenes } from "../scenes/scenes.ts";
import { Servers } from "../scenes/servers.ts";
import { askAgent } from "../scenes/socket.ts";
import { stateDirectory } from "../scenes/state.ts";
import type { OnStep } from "../scenes/ledger.ts";
import { nodeDirectory } from "../enrol/node-key.ts";
import { currentAccount, Launcher, type LaunchService, shimPathFor } from "../launcher/launcher.ts";
import { systemClock } from "../std/clock.ts";
import { Failure } from "../std/errors.ts";
import { makeDirectory } from "../std/files.ts";
import { takeLock } from "../std/lock.ts";
import { type Environment, rootFrom } from "./settings.ts";
import { openGateways } from "./scene-gateways.ts";

export type SceneOptions = { readonly root?: string };

/** What scenes.yaml says. Throws scenes_missing and scenes_invalid. */
export function sceneRegistry(options: SceneOptions, env: Environment): Registry {
  return readRegistry(rootFrom(env, options.root), { env: known(env) });
}

export async function sceneOperation(
  options: SceneOptions & { readonly operation: Operation },
  env: Environment,
  job: Job,
): Promise<OperationResult> {
  const root = rootFrom(env, options.root);
  const answered = await askAgent(root, options.operation, job.emit, job.signal);
  if (answered !== undefined) return answered;
  await using alone = await openScenes({ root, env });
  return await runOperation({ ...alone.context, agentPid: null }, options.operation, job);
}

export type OpenScenes = AsyncDisposable & {
  readonly context: Omit<OperationContext, "agentPid">;
  /** For what runs: what cannot be started now is only noted. */
  readonly registry: () => Registry;
  readonly gateways: GatewayPort;
  readonly servers: Servers;
  readonly learned: LearnedNeeds;
};

export type OpenScenesOptions = {
  readonly root: string;
  readonly env: Environment;
  readonly onStep?: OnStep;
  /** Has systemd start models; absent: this process does. */
  readonly service?: LaunchService;
  readonly memory?: MemoryOptions;
};

/** Where memory is read, and how long a stopped model's is waited for; default: this machine's, a minute. */
export type MemoryOptions = { readonly files?: MemoryFiles; readonly recoveryMs?: number };

/** Takes the lock of the scenes until it is disposed. Throws root_in_use. */
export async function openScenes({ root, env, onStep, service, memory = {} }: OpenScenesOptions): Promise<OpenScenes> {
  makeDirectory(root, 0o755);
  makeDirectory(stateDirectory(root), 0o700);
  makeDirectory(nodeDirectory(root), 0o700);
  const file = path.join(stateDirectory(root), "lock");
  const lock = takeLock(file, `pid ${process.pid}`);
  if (lock.kind === "held")
    throw new Failure(
      "scene_busy",
      `the scenes of ${root} are being changed${lock.holder === "" ? "" : ` by ${lock.holder}`}`,
    );
  const launcher = await Launcher.open({
    root: nodeDirectory(root),
    shimPath: shimPathFor(process.arch),
    account: currentAccount(),
    ...(service === undefined ? {} : { service }),
    clock: systemClock,
  });
  const files = new ModelFiles();
  const registry = (): Registry => readRegistry(root, { env: known(env), files });
  const running = (): Registry => readRegistry(root, { env: known(env), files, isRunning: true });
  const servers = new Servers(launcher, systemClock);
  const gateways = openGateways({ root, launcher, clock: systemClock });
  const learned = new LearnedNeeds(root);
  const available = (): Available | undefined => availableMemory(memory.files);
  const { recoveryMs } = memory;
  const scenes = new Scenes({
    root,
    registry,
    running,
    servers,
    gateways,
    learned,
    available,
    clock: systemClock,
    ...(recoveryMs === undefined ? {} : { recoveryMs }),
    ...(onStep === undefined ? {} : { onStep }),
  });
  return {
    context: { root, scenes, available },
    registry: running,
    gateways,
    servers,
    learned,
    [Symbol.asyncDispose]: () => {
      lock.release();
      return Promise.resolve();
    },
  };
}

/** Variables that are set. */
function known(env: Environment): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
