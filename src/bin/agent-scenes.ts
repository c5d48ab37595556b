// SPDX-License-Identifier: Apache-2.0
// The scenes of a node for as long as its agent runs: one writer, asked over the socket, kept by the keeper. A node without
// scenes.yaml has none, and may get one at any time.

import { Keeper, type KeeperTimes } from "../scenes/keeper.ts";
import { type Operation, type OperationContext, type OperationResult, runOperation } from "../scenes/operations.ts";
import type { Job } from "../scenes/scenes.ts";
import { serveOperations } from "../scenes/socket.ts";
import type { OnStep } from "../scenes/ledger.ts";
import { systemClock } from "../std/clock.ts";
import { codeOf } from "../std/errors.ts";
import type { Log } from "../std/log.ts";
import { openScenes, type OpenScenes } from "./scene.ts";
import type { Environment } from "./settings.ts";

export type AgentScenesOptions = {
  readonly root: string;
  readonly env: Environment;
  readonly log: Log;
  readonly times?: KeeperTimes;
  readonly onStep?: OnStep;
};

export type AgentScenes = AsyncDisposable & {
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
  const keeper = stack.use(
    new Keeper({
      scenes,
      servers: opened.servers,
      learned: opened.learned,
      clock: systemClock,
      log,
      ...(times === undefined ? {} : { times }),
    }),
  );
  const ask = async (operation: Operation, job: Job): Promise<OperationResult> => {
    try {
      return await runOperation(context, operation, job);
    } finally {
      if (!["status", "verify", "plan"].includes(operation.op)) keeper.forgive();
    }
  };
  stack.use(await serveOperations(options.root, ask));
  keeper.start();
  const owned = stack.move();
  return { context, ask, [Symbol.asyncDispose]: () => owned.disposeAsync() };
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
