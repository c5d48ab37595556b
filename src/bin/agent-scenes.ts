// SPDX-License-Identifier: Apache-2.0
// The scenes of a node for as long as its agent runs: one writer, asked over the socket, kept by the keeper. A node without
// scenes.yaml has none, and may get one at any time.

import { Floor, type Victim } from "../scenes/floor.ts";
import { Keeper, type KeeperTimes } from "../scenes/keeper.ts";
import { type Operation, type OperationContext, type OperationResult, runOperation } from "../scenes/operations.ts";
import type { Job, Scenes } from "../scenes/scenes.ts";
import { serveOperations } from "../scenes/socket.ts";
import type { OnStep } from "../scenes/ledger.ts";
import { systemClock } from "../std/clock.ts";
import { largestUsers } from "../scenes/usage.ts";
import { codeOf, Failure } from "../std/errors.ts";
import { describeProcess } from "../std/listeners.ts";
import type { Log } from "../std/log.ts";
import { allPids } from "../std/process.ts";
import { sizeText } from "../std/units.ts";
import { openScenes, type OpenScenes } from "./scene.ts";
import type { Environment } from "./settings.ts";

export type AgentScenesOptions = {
  readonly root: string;
  readonly env: Environment;
  readonly log: Log;
  /** In place of the floor of scenes.yaml. */
  readonly floorBytes?: number;
  readonly times?: KeeperTimes;
  readonly onStep?: OnStep;
};

/** What the agent's jobs have to do with the memory of the machine. */
export type Pressure = {
  /** Nothing new is started. */
  readonly isUnder: () => boolean;
  /** Who can be given up before any model, the least important first. */
  readonly setJobs: (jobs: () => readonly Victim[]) => void;
};

export type AgentScenes = AsyncDisposable & {
  readonly pressure: Pressure;
  readonly context: OperationContext;
  readonly ask: (operation: Operation, job: Job) => Promise<OperationResult>;
};

/** A command may be in the middle of a switch: it ends first. */
const LOCK_WAIT_MS = 10 * 60_000;
const LOCK_LOOK_MS = 100;

export async function startScenes(options: AgentScenesOptions): Promise<AgentScenes> {
  const { log, times } = options;
  await using stack = new AsyncDisposableStack();
  const opened = stack.use(await openWhenFree(options));
  const context: OperationContext = { ...opened.context, agentPid: process.pid };
  const { scenes } = context;
  let jobs: () => readonly Victim[] = () => [];
  const floor = stack.use(
    new Floor({
      floorBytes: () => options.floorBytes ?? floorOf(opened),
      available: context.available,
      victims: () => [...jobs(), ...modelVictims(context.scenes)],
      whoUses,
      abortSwitch: () => scenes.abortSwitch(),
      clock: systemClock,
      log,
    }),
  );
  const keeper = stack.use(
    new Keeper({
      scenes,
      mayStart: () => !floor.isUnder,
      servers: opened.servers,
      learned: opened.learned,
      clock: systemClock,
      log,
      ...(times === undefined ? {} : { times }),
    }),
  );
  const refuseUnder = (operation: Operation): void => {
    if (floor.isUnder && (operation.op === "activate" || operation.op === "resume"))
      throw new Failure("scene_refused", "memory is under the floor of this node: nothing is started until it is back");
  };
  const ask = async (operation: Operation, job: Job): Promise<OperationResult> => {
    refuseUnder(operation);
    try {
      return await runOperation(context, operation, job);
    } finally {
      if (!["status", "verify", "plan"].includes(operation.op)) keeper.forgive();
    }
  };
  stack.use(await serveOperations(options.root, ask));
  keeper.start();
  const owned = stack.move();
  const pressure = { isUnder: () => floor.isUnder, setJobs: (next: () => readonly Victim[]) => void (jobs = next) };
  return { context, ask, pressure, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The registry may be away or broken at any time. */
function floorOf({ registry }: OpenScenes): number | undefined {
  try {
    return registry().floorBytes;
  } catch {
    return undefined;
  }
}

/** The scene names its models by importance; while a switch is under way, that one is given up first. */
function modelVictims(scenes: Scenes): readonly Victim[] {
  if (scenes.busy !== undefined) return [];
  return scenes
    .activeModels()
    .filter((name) => scenes.state.models.has(name))
    .toReversed()
    .map((name) => ({ name: `model ${name}`, giveUp: (why) => scenes.shed(name, why) }));
}

const USERS_SAID = 3;

function whoUses(): string {
  const users = largestUsers(allPids(), USERS_SAID).map(
    ({ pid, bytes }) => `${describeProcess(pid)} uses ${sizeText(bytes)}`,
  );
  return `most memory: ${users.join("; ")}`;
}

async function openWhenFree({ root, env, log, onStep }: AgentScenesOptions): Promise<OpenScenes> {
  const until = systemClock.monotonicMs() + LOCK_WAIT_MS;
  for (let isSaid = false; ; isSaid = true) {
    try {
      return await openScenes({ root, env, ...(onStep === undefined ? {} : { onStep }) });
    } catch (error) {
      if (codeOf(error) !== "scene_busy" || systemClock.monotonicMs() > until) throw error;
      if (!isSaid) log.info({}, "a command changes the scenes: waiting for its end");
      await systemClock.sleep(LOCK_LOOK_MS);
    }
  }
}
