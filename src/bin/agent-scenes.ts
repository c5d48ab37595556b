// SPDX-License-Identifier: Apache-2.0
// The scenes of a node for as long as its agent runs: one writer, asked over the socket, kept by the keeper. A node without
// scenes.yaml has none, and may get one at any time.

import type { SceneReport, SceneWish } from "../protocol/scene-schema.ts";
import type { Emit } from "../scenes/events.ts";
import { Floor, type Victim } from "../scenes/floor.ts";
import { Keeper, type KeeperTimes } from "../scenes/keeper.ts";
import { type Operation, type OperationContext, type OperationResult, runOperation } from "../scenes/operations.ts";
import { isNewWish, type Progress, reportOf, type WishState } from "../scenes/report.ts";
import type { Job, Scenes } from "../scenes/scenes.ts";
import { serveOperations } from "../scenes/socket.ts";
import type { OnStep } from "../scenes/ledger.ts";
import type { LaunchService } from "../launcher/launcher.ts";
import { systemClock } from "../std/clock.ts";
import { largestUsers } from "../scenes/usage.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { describeProcess } from "../std/listeners.ts";
import type { Log } from "../std/log.ts";
import { allPids } from "../std/process.ts";
import { sizeText } from "../std/units.ts";
import { type MemoryOptions, openScenes, type OpenScenes } from "./scene.ts";
import type { Environment } from "./settings.ts";

export type AgentScenesOptions = {
  readonly root: string;
  readonly env: Environment;
  readonly log: Log;
  /** In place of the floor of scenes.yaml. */
  readonly floorBytes?: number;
  readonly times?: KeeperTimes;
  readonly onStep?: OnStep;
  readonly memory?: MemoryOptions;
  /** Has systemd start models; absent: the agent does. */
  readonly service?: LaunchService;
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
  /** As it is told to a controller. */
  readonly report: () => SceneReport;
  /** Called when what is reported has changed while an operation goes on. */
  readonly onChange: (listener: () => void) => void;
  /** Asked for from afar: acted on once for each number, in the background. */
  readonly wish: (wish: SceneWish) => void;
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
  let news = (): void => {};
  let jobs: () => readonly Victim[] = () => [];
  const floorBytes = floorFrom(options.floorBytes, opened);
  const floor = stack.use(
    new Floor({
      floorBytes,
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
      onNews: () => news(),
      servers: opened.servers,
      learned: opened.learned,
      gateways: opened.gateways,
      clock: systemClock,
      log,
      ...(times === undefined ? {} : { times }),
    }),
  );
  const running = new Operations({ context, floor, keeper });
  stack.use(await serveOperations(options.root, (operation, job) => running.ask(operation, job)));
  keeper.start();
  const owned = stack.move();
  const wishes = new Wishes(context, (operation, job) => running.ask(operation, job), log);
  return {
    pressure: { isUnder: () => floor.isUnder, setJobs: (next) => void (jobs = next) },
    report: () =>
      reportOf({
        context,
        registry: opened.registry,
        observed: keeper.seen,
        traffic: keeper.traffic,
        progress: running.progress,
        floorBytes,
        wish: wishes.state,
      }),
    wish: (wished) => wishes.take(wished),
    onChange: (listener) => {
      running.onChange = listener;
      news = listener;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

type OperationsOptions = { readonly context: OperationContext; readonly floor: Floor; readonly keeper: Keeper };

/** Whoever asks, over the socket or from afar: what goes on is kept for those who look. */
class Operations {
  readonly #options: OperationsOptions;
  readonly #progress = new Map<string, Progress>();
  onChange = (): void => {};

  constructor(options: OperationsOptions) {
    this.#options = options;
  }

  /** Of the operation that goes on, or went on last. */
  get progress(): readonly Progress[] {
    return [...this.#progress.values()];
  }

  async ask(operation: Operation, job: Job): Promise<OperationResult> {
    const { context, floor, keeper } = this.#options;
    if (["status", "plan"].includes(operation.op)) return runOperation(context, operation, job);
    if (floor.isUnder && (operation.op === "activate" || operation.op === "resume"))
      throw new Failure("scene_refused", "memory is under the floor of this node: nothing is started until it is back");
    const isFirst = context.scenes.busy === undefined;
    if (isFirst) this.#progress.clear();
    const emit: Emit = (event) => {
      job.emit(event);
      if (event.kind !== "model") return;
      const { model, phase, text, ms } = event;
      this.#progress.set(model, { model, phase, text, ms });
      this.onChange();
    };
    try {
      return await runOperation(context, operation, { ...job, emit });
    } finally {
      if (isFirst) keeper.forgive();
      this.onChange();
    }
  }
}

type Ask = Operations["ask"];

/** What a person asks for from afar. */
class Wishes {
  readonly #context: OperationContext;
  readonly #ask: Ask;
  readonly #log: Log;
  state: WishState | null = null;
  #isBusy = false;

  constructor(context: OperationContext, ask: Ask, log: Log) {
    this.#context = context;
    this.#ask = ask;
    this.#log = log;
  }

  take(wish: SceneWish): void {
    const { ledger } = this.#context.scenes;
    if (this.#isBusy || !isNewWish(wish, ledger.state.extra["wish_number"])) return;
    this.#isBusy = true;
    void this.#act(wish).finally(() => (this.#isBusy = false));
  }

  async #act({ number, scene }: SceneWish): Promise<void> {
    const { ledger } = this.#context.scenes;
    const what = scene === null ? "no scene" : `scene ${scene}`;
    this.state = { number, state: "under-way", text: what };
    try {
      // Kept before it is acted on: a wish is never acted on twice.
      await ledger.write(({ extra }) => ({ extra: { ...extra, wish_number: number } }));
      this.#log.info({ number, scene }, "a scene is asked for from afar");
      const job: Job = { emit: () => {}, signal: new AbortController().signal };
      await this.#ask(scene === null ? { op: "stop" } : { op: "activate", scene }, job);
      this.state = { number, state: "done", text: scene === null ? "no scene is active" : `${scene} is active` };
    } catch (error) {
      const text = messageOf(error).slice(0, 1024);
      this.#log.warn({ number, scene, error: text }, "a scene that was asked for from afar was not activated");
      this.state = { number, state: "refused", text };
    }
  }
}

/** scenes.yaml may be away or broken at any time: the floor that it told last holds on. */
function floorFrom(given: number | undefined, { registry }: OpenScenes): () => number | undefined {
  let told: number | undefined;
  return () => {
    if (given !== undefined) return given;
    try {
      told = registry().floorBytes;
    } catch {
      // Said wherever somebody asks for a scene.
    }
    return told;
  };
}

/** The scene names its models by importance; while a switch is under way, that one is given up first. */
function modelVictims(scenes: Scenes): readonly Victim[] {
  if (scenes.busy !== undefined) return [];
  const { models } = scenes.state;
  const named = scenes.activeModels();
  // Without a scenes.yaml that can be read: as they were started.
  return (named.length === 0 ? [...models.keys()] : named)
    .filter((name) => models.has(name))
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

async function openWhenFree({ log, ...options }: AgentScenesOptions): Promise<OpenScenes> {
  const until = systemClock.monotonicMs() + LOCK_WAIT_MS;
  for (let isSaid = false; ; isSaid = true) {
    try {
      return await openScenes(options);
    } catch (error) {
      if (codeOf(error) !== "scene_busy" || systemClock.monotonicMs() > until) throw error;
      if (!isSaid) log.info({}, "a command changes the scenes: waiting for its end");
      await systemClock.sleep(LOCK_LOOK_MS);
    }
  }
}
