// SPDX-License-Identifier: Apache-2.0
// Keeps the active scene true while an agent runs: resumes once, watches every model's end, looks at its health, starts again
// what died, within a budget. Rules: a model that is not exactly itself is not served; what dies again and again is given up
// and said; nothing is done while an operation is under way.

import type { Clock } from "../std/clock.ts";
import { codeOf, messageOf } from "../std/errors.ts";
import type { Log } from "../std/log.ts";
import { Loop } from "../std/loop.ts";
import { processTree } from "../std/listeners.ts";
import type { GatewayPort, Traffic } from "./fronts.ts";
import type { LearnedNeeds } from "./learned.ts";
import type { Observed } from "./observe.ts";
import type { Scenes } from "./scenes.ts";
import type { Servers } from "./servers.ts";
import type { ModelRecord } from "./state.ts";
import { memoryOf, type Work, wentOn, workOf } from "./usage.ts";

export type KeeperTimes = {
  readonly healthMs: number;
  /** Between the restarts of one model: doubled each time, up to this. */
  readonly backoffFirstMs: number;
  readonly backoffMaxMs: number;
  /** So many restarts of one model in so long a time, and no more. */
  readonly budget: number;
  readonly budgetMs: number;
};

export const KEEPER_TIMES: KeeperTimes = {
  healthMs: 5_000,
  backoffFirstMs: 1_000,
  backoffMaxMs: 60_000,
  budget: 5,
  budgetMs: 10 * 60_000,
};

/** A server that is busy may miss a question; one that misses three in a row is not healthy. */
const MISSES_MAX = 3;

export type KeeperOptions = {
  readonly scenes: Scenes;
  readonly servers: Servers;
  readonly learned: LearnedNeeds;
  readonly gateways: GatewayPort;
  /** Called when other models run than a look before, or one is not what it was. */
  readonly onNews: () => void;
  /** Nothing is started while memory is short. */
  readonly mayStart: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly times?: KeeperTimes;
};

function namesOf(observed: readonly Observed[]): string {
  return observed.map(({ condition, record }) => `${record.launchId} ${condition}`).join();
}

type Unserved = Pick<Observed, "name" | "condition" | "why"> & { readonly record?: ModelRecord };

type Health = {
  /** Monotonic times of the restarts that count. */
  restarts: readonly number[];
  nextAt: number;
  misses: number;
  hasGivenUp: boolean;
  /** How it ended, or why it could not be started, the last time. */
  fault: string | undefined;
};

export class Keeper implements AsyncDisposable {
  readonly #options: KeeperOptions;
  readonly #times: KeeperTimes;
  readonly #stop = new AbortController();
  readonly #health = new Map<string, Health>();
  readonly #watched = new Map<string, { readonly record: ModelRecord; readonly stop: AbortController }>();
  #seen: readonly Observed[] = [];
  traffic: ReadonlyMap<string, Traffic> = new Map();
  readonly #work = new Map<string, { readonly at: number; readonly work: Work }>();
  #shown = "";
  #loop: Loop | undefined;
  #resuming: Promise<void> = Promise.resolve();

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#times = options.times ?? KEEPER_TIMES;
  }

  /** Resumes, then keeps. Returns at once. */
  start(): void {
    const { clock, log } = this.#options;
    this.#resuming = this.#resume();
    const round = async (): Promise<void> => {
      await this.#resuming;
      await this.#round();
    };
    this.#loop = new Loop({ name: "scenes", periodMs: this.#times.healthMs, clock, log, round });
  }

  /** After an operation, or when something happened. */
  nudge(): void {
    this.#loop?.nudge();
  }

  /** At the last round. */
  get seen(): readonly Observed[] {
    const { models } = this.#options.scenes.state;
    return this.#seen.filter(({ name, record }) => models.get(name)?.launchId === record.launchId);
  }

  /** A person has decided something: what was given up is tried again. */
  forgive(): void {
    this.#health.clear();
    this.nudge();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    for (const { stop } of this.#watched.values()) stop.abort();
    await this.#resuming;
    await this.#loop?.[Symbol.asyncDispose]();
  }

  async #resume(): Promise<void> {
    const { scenes, log } = this.#options;
    const { desired, transition, models } = scenes.state;
    if (desired === null && transition === null && models.size === 0) return;
    try {
      const text = await scenes.resume({ emit: () => {}, signal: this.#stop.signal });
      log.info({ scene: scenes.state.active }, `scenes: ${text}`);
    } catch (error) {
      if (!this.#stop.signal.aborted) log.error({ error: messageOf(error) }, "the scene could not be resumed");
    }
  }

  async #round(): Promise<void> {
    const { scenes, learned } = this.#options;
    this.#watch();
    if (scenes.busy !== undefined || scenes.state.active === null || scenes.ledger.doubt !== undefined) return;
    const observed = await scenes.observe();
    const isNews = namesOf(observed) !== namesOf(this.#seen);
    this.#seen = observed;
    this.traffic = await this.#options.gateways.traffic();
    if (isNews) this.#options.onNews();
    for (const { condition, record } of observed)
      if (condition === "healthy" && record.identity !== undefined && record.spec !== undefined) {
        const { anonymous, swapped } = memoryOf(processTree(record.identity.pid));
        learned.note(record.spec, anonymous + swapped);
      }
    await this.#show(observed);
    if (!this.#options.mayStart()) return;
    for (const each of [...observed, ...this.#missing(observed)])
      if (this.#needsRestart(each)) await this.#restart(each);
  }

  /** Models of the active scene that the state does not know: given up for a while. */
  #missing(observed: readonly Observed[]): readonly Unserved[] {
    const known = new Set(observed.map(({ name }) => name));
    const why = "it was stopped for want of memory";
    return this.#options.scenes
      .activeModels()
      .filter((name) => !known.has(name))
      .map((name) => ({ name, condition: "dead", why }));
  }

  /** The gateways are told when what is healthy changes, and now and then: one that died must come back. */
  async #show(observed: readonly Observed[]): Promise<void> {
    const { scenes } = this.#options;
    const bad = observed.filter(
      ({ name, condition }) => condition !== "healthy" && this.#isServedNoMore(name, condition),
    );
    const unhealthy = new Map(bad.map(({ name, why }) => [name, why]));
    const shown = JSON.stringify([
      scenes.state.active,
      [...unhealthy.keys()],
      observed.map(({ record }) => record.launchId),
    ]);
    if (shown === this.#shown && (await scenes.areGatewaysUp())) return;
    await scenes.serve(unhealthy);
    this.#shown = shown;
  }

  #isServedNoMore(name: string, condition: Observed["condition"]): boolean {
    return condition === "dead" || this.#healthOf(name).misses >= MISSES_MAX;
  }

  #healthOf(name: string): Health {
    const known = this.#health.get(name);
    if (known !== undefined) return known;
    const health: Health = { restarts: [], nextAt: 0, misses: 0, hasGivenUp: false, fault: undefined };
    this.#health.set(name, health);
    return health;
  }

  /** One that computes may be too busy to answer: that is not idle, and not dead. */
  #works({ name, record }: Unserved): boolean {
    const before = this.#work.get(name);
    if (record?.identity === undefined) return false;
    const now = { at: this.#options.clock.monotonicMs(), work: workOf(processTree(record.identity.pid)) };
    this.#work.set(name, now);
    return before === undefined || wentOn(before.work, now.work, now.at - before.at);
  }

  #needsRestart(seen: Unserved): boolean {
    const { name, condition, why } = seen;
    const { clock } = this.#options;
    const health = this.#healthOf(name);
    if (condition === "healthy" || condition === "legacy") {
      health.misses = 0;
      return false;
    }
    const isSilent = condition === "unhealthy" && !why.startsWith("marker: it says");
    if (isSilent && this.#works(seen)) return false;
    health.misses = condition === "dead" || why.startsWith("marker: it says") ? MISSES_MAX : health.misses + 1;
    return health.misses >= MISSES_MAX && !health.hasGivenUp && clock.monotonicMs() >= health.nextAt;
  }

  async #restart({ name, why }: Unserved): Promise<void> {
    const { scenes, clock, log } = this.#options;
    const { budget, budgetMs, backoffFirstMs, backoffMaxMs } = this.#times;
    const health = this.#healthOf(name);
    const now = clock.monotonicMs();
    // Counted over a window: a good start between two deaths gives nothing back.
    health.restarts = health.restarts.filter((at) => at > now - budgetMs);
    if (health.restarts.length >= budget) {
      health.hasGivenUp = true;
      const error = `${name} was started again ${budget} times in ${Math.round(budgetMs / 1000)} s and is given up: ${health.fault ?? why}`;
      log.error({ model: name }, error);
      return scenes.noteError(error);
    }
    health.restarts = [...health.restarts, now];
    log.warn({ model: name, why }, "a model is started again");
    try {
      const fault = await scenes.restart(name, { emit: () => {}, signal: this.#stop.signal });
      health.fault = fault;
      if (fault !== undefined) log.error({ model: name, fault }, "a model could not be started again");
    } catch (error) {
      // Somebody was faster; the next round looks again.
      if (codeOf(error) !== "scene_busy") throw error;
    }
    health.misses = 0;
    const waitMs = Math.min(backoffMaxMs, backoffFirstMs * 2 ** (health.restarts.length - 1));
    health.nextAt = clock.monotonicMs() + waitMs;
    // The loop's period may be longer than the wait.
    void clock.sleep(waitMs, this.#stop.signal).then(() => this.nudge());
    this.nudge();
  }

  /** Follows the end of each process that the state names. */
  #watch(): void {
    const { scenes, servers } = this.#options;
    const { models } = scenes.state;
    for (const [name, { record, stop }] of this.#watched)
      if (models.get(name)?.identity?.pid !== record.identity?.pid) {
        stop.abort();
        this.#watched.delete(name);
        // Another process of this name has its own budget only when a person asked for it.
        if (!models.has(name)) this.#health.delete(name);
      }
    for (const [name, record] of models) {
      if (this.#watched.has(name) || record.identity === undefined) continue;
      const stop = new AbortController();
      this.#watched.set(name, { record, stop });
      const signal = AbortSignal.any([stop.signal, this.#stop.signal]);
      void servers.waitGone(record, signal).then(
        (end) => (end === undefined ? undefined : this.#noteEnd(name, end)),
        () => {},
      );
    }
  }

  #noteEnd(name: string, end: string): void {
    const { log, scenes } = this.#options;
    // A round may have seen it first, and be at its restart.
    if (scenes.busy === undefined || scenes.busy.startsWith("a restart of")) {
      log.warn({ model: name, end }, "a model ended");
      this.#healthOf(name).fault = end;
    }
    this.nudge();
  }
}
