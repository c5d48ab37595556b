// SPDX-License-Identifier: Apache-2.0
// The scenes of a node: one writer, one operation at a time. A switch either happens whole or did not happen:
//
//   idle ──activate──► switching ──all markers──► idle, target active
//                          └─fault─► restoring ──markers──► idle, former scene active
//                                        └─fault─► idle, nothing active, and both faults told
//
// Rules: everything is validated before the first stop; "active" is proof; a record that proves no process is never signalled.

import type { Clock } from "../std/clock.ts";
import { Failure, messageOf } from "../std/errors.ts";
import { adoptScene } from "./adopt.ts";
import type { Emit } from "./events.ts";
import { type Front, frontsAll, frontsDuring, frontsOf, type GatewayPort } from "./fronts.ts";
import { runHook } from "./hooks.ts";
import type { LearnedNeeds } from "./learned.ts";
import { type OnStep, SceneLedger } from "./ledger.ts";
import type { Available } from "./memory.ts";
import { type Observed, observeAll, strangersOn, wantedOf } from "./observe.ts";
import { type Plan, planSwitch } from "./plan.ts";
import { findScene, modelsOf, type Registry, type Scene } from "./registry.ts";
import type { Servers } from "./servers.ts";
import { committed, type SceneState } from "./state.ts";
import { carryOut, endOrphans, stopAll, type SwitchTools } from "./switch.ts";

export { type GatewayPort } from "./fronts.ts";
export { type Plan } from "./plan.ts";

export type ScenesOptions = {
  readonly root: string;
  /** The registry as the file is now. Throws scenes_missing and scenes_invalid. */
  readonly registry: () => Registry;
  /** The same for what runs already: what cannot be started now is only noted. */
  readonly running: () => Registry;
  readonly servers: Servers;
  readonly gateways: GatewayPort;
  readonly learned: LearnedNeeds;
  readonly available: () => Available | undefined;
  readonly clock: Clock;
  readonly onStep?: OnStep;
  /** How long memory that stops should have given back is waited for. */
  readonly recoveryMs?: number;
};

const GRACE_MS = 10_000;

export type Job = { readonly emit: Emit; readonly signal: AbortSignal };
type Switching = {
  readonly registry: Registry;
  readonly scene: Scene;
  /** What is healthy stays, whatever its line in scenes.yaml says by now. */
  readonly isKeptAsIs: boolean;
};

export class Scenes {
  readonly #options: ScenesOptions;
  readonly ledger: SceneLedger;
  #busy: string | undefined;
  #abort = new AbortController();

  constructor(options: ScenesOptions) {
    this.#options = options;
    this.ledger = new SceneLedger(options.root, options.onStep ?? (() => Promise.resolve()));
  }

  get state(): SceneState {
    return this.ledger.state;
  }

  /** What is being done; undefined when nothing is. */
  get busy(): string | undefined {
    return this.#busy;
  }

  /** One at a time: whoever comes second is told who is first. Throws scene_busy. */
  async #alone<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#busy !== undefined) throw new Failure("scene_busy", `${this.#busy} is not over yet`);
    this.#busy = what;
    this.#abort = new AbortController();
    try {
      return await work();
    } finally {
      this.#busy = undefined;
    }
  }

  /** What a switch would do; it changes nothing. Throws scene_unknown and what the registry throws. */
  async plan(name: string): Promise<Plan> {
    const registry = this.#options.registry();
    return this.#plan({ registry, scene: findScene(registry, name), isKeptAsIs: false });
  }

  async #plan({ registry, scene, isKeptAsIs }: Switching): Promise<Plan> {
    const { available, learned } = this.#options;
    const models = modelsOf(registry, scene);
    const observed = await observeAll(this.state, registry);
    const wanted = models.map((model) => wantedOf(model, learned.needs));
    const specs = new Map(wanted.map(({ name, spec }) => [name, spec]));
    const running = observed.map((each) =>
      isKeptAsIs && each.condition === "healthy" ? { ...each, spec: specs.get(each.name) ?? each.spec } : each,
    );
    const listens = [...registry.gateways.values()].map(({ listen }) => listen);
    const plan = planSwitch({
      scene: scene.name,
      from: this.state.active,
      wanted,
      running,
      strangers: strangersOn(models, observed),
      memory: {
        availableBytes: available()?.bytes ?? Number.MAX_SAFE_INTEGER,
        floorBytes: registry.floorBytes ?? 0,
      },
    });
    return { ...plan, problems: [...plan.problems, ...(await this.#options.gateways.problems(listens))] };
  }

  /** Throws scene_busy, scene_refused (nothing changed), scene_failed (the former scene was restored, or not: the text says). */
  activate(name: string, job: Job): Promise<Plan> {
    return this.#alone(`a switch to ${name}`, () => this.#activate(name, job));
  }

  async #activate(name: string, job: Job): Promise<Plan> {
    this.ledger.refuseLost();
    const registry = this.#options.registry();
    const switching = { registry, scene: findScene(registry, name), isKeptAsIs: false };
    const plan = await this.#plan(switching);
    if (plan.problems.length > 0)
      throw new Failure("scene_refused", `${name} is not activated: ${plan.problems.join("; ")}`);
    const { desired, active } = this.state;
    this.ledger.settleDoubt();
    await this.ledger.write({ desired: name, transition: name });
    await this.#switchOrRestore({ switching, plan, job, desired, active });
    return plan;
  }

  async #switchOrRestore(input: {
    readonly switching: Switching;
    readonly plan: Plan;
    readonly job: Job;
    readonly desired: string | null;
    readonly active: string | null;
  }): Promise<void> {
    const { switching, plan, job, desired, active } = input;
    try {
      await this.#switch(switching, plan, { ...job, signal: AbortSignal.any([job.signal, this.#abort.signal]) });
    } catch (error) {
      job.emit({ kind: "note", text: `${messageOf(error)}: back to ${active ?? "no scene"}`, ms: 0 });
      const { isBack, text: restore } = await this.#restore(active, { ...job, signal: new AbortController().signal });
      const lastError = { at: this.#now(), scene: switching.scene.name, error: messageOf(error), restore };
      await this.ledger.write({ desired, transition: null, lastError, active: isBack ? active : null });
      throw new Failure("scene_failed", `${switching.scene.name} was not activated: ${messageOf(error)}; ${restore}`, {
        cause: error,
      });
    }
  }

  /** Up to the commit. */
  async #switch({ registry, scene }: Switching, plan: Plan, { emit, signal }: Job): Promise<void> {
    const { servers } = this.#options;
    const tools = this.#tools(emit, registry);
    // A model of the active scene that is started again is no switch.
    const hook = async (which: "before" | "after"): Promise<void> =>
      plan.from === scene.name && plan.keep.length > 0
        ? undefined
        : runHook({ servers, ledger: this.ledger, scene, which, emit });
    await hook("before");
    await carryOut(tools, {
      plan,
      models: registry.models,
      holding: frontsDuring(registry, scene, this.state, plan.keep),
      serving: () => frontsOf(registry, scene, this.state),
      signal,
    });
    await hook("after");
    await this.ledger.write((state) => committed(state, scene.name));
  }

  /** How the way back ended. */
  async #restore(name: string | null, job: Job): Promise<{ readonly isBack: boolean; readonly text: string }> {
    try {
      const registry = this.#options.running();
      if (name === null) {
        await stopAll(this.#tools(job.emit, registry), [...this.state.models.keys()], () => {});
        await this.#options.gateways.set(frontsAll(registry, { kind: "refusing", why: "no scene is active" }));
        return { isBack: true, text: "nothing is restored" };
      }
      const scene = findScene(registry, name);
      const plan = await this.#plan({ registry, scene, isKeptAsIs: true });
      if (plan.problems.length > 0) throw new Failure("scene_refused", plan.problems.join("; "));
      await carryOut(this.#tools(job.emit, registry), {
        plan: { ...plan, isMakeBeforeBreak: false },
        models: registry.models,
        holding: frontsDuring(registry, scene, this.state, plan.keep),
        serving: () => frontsOf(registry, scene, this.state),
        signal: job.signal,
      });
      return { isBack: true, text: `${name} is restored` };
    } catch (error) {
      await this.#refuseAll(`no scene is whole: ${messageOf(error)}`);
      return { isBack: false, text: `${name ?? "nothing"} could not be restored: ${messageOf(error)}` };
    }
  }

  async #refuseAll(why: string): Promise<void> {
    try {
      await this.#options.gateways.set(frontsAll(this.#options.running(), { kind: "refusing", why }));
    } catch {
      // A gateway proves what it serves by itself: a broken scene is refused there too.
    }
  }

  /** At the start of an agent, and on command: what was begun is ended, what is wished is brought about, what is healthy stays. */
  resume(job: Job): Promise<string> {
    return this.#alone("a resume", () => this.#resume(job));
  }

  async #resume(job: Job): Promise<string> {
    const registry = this.#options.running();
    if (this.ledger.doubt !== undefined) return this.#reportOnly(registry);
    await endOrphans({ servers: this.#options.servers, state: this.state, emit: job.emit }, GRACE_MS);
    const { transition, desired, active, lastKnownGood } = this.state;
    const wish = transition ?? desired;
    if (wish === null) {
      await stopAll(this.#tools(job.emit, registry), [...this.state.models.keys()], () => {});
      await this.#refuseAll("no scene is active");
      return "no scene is wished for";
    }
    const fallbacks = [active, lastKnownGood].filter((name) => name !== null && name !== wish);
    const faults: string[] = [];
    for (const name of new Set([wish, ...fallbacks])) {
      const fault = await this.#bring(name ?? "", job);
      // Why it is not the one that was wished for stays told.
      if (faults.length > 0 && fault === undefined) await this.noteError(faults.join("; "), `${name} is active`);
      if (fault === undefined) return name === wish ? `${name} is active` : `${name} is active instead of ${wish}`;
      faults.push(`${name} is not resumed: ${fault}`);
    }
    await this.#refuseAll("no scene is whole");
    await this.ledger.write({ transition: null, active: null });
    await this.noteError(faults.join("; "));
    throw new Failure("scene_failed", faults.join("; "));
  }

  /** Undefined when it is active; else why not. Nothing else is restored. */
  async #bring(name: string, job: Job): Promise<string | undefined> {
    try {
      const registry = this.#options.running();
      const switching = { registry, scene: findScene(registry, name), isKeptAsIs: true };
      const plan = await this.#plan(switching);
      const unready = plan.start.flatMap((model) => registry.unready.get(model) ?? []);
      const problems = [...plan.problems, ...unready.map(({ place, problem }) => `${place}: ${problem}`)];
      if (problems.length > 0) return problems.join("; ");
      const isWhole = plan.start.length + plan.stop.length + plan.forget.length === 0;
      if (isWhole && this.state.active === name && this.state.transition === null && this.state.desired === name) {
        await this.#options.gateways.set(frontsOf(registry, switching.scene, this.state));
        return undefined;
      }
      await this.ledger.write({ desired: name, transition: name });
      await this.#switch(switching, plan, job);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** The state is a guess: what is proved is served, nothing is started or stopped. */
  async #reportOnly(registry: Registry): Promise<string> {
    const { active } = this.state;
    const scene = active === null ? undefined : registry.scenes.get(active);
    if (scene !== undefined) {
      const bad = (await observeAll(this.state, registry)).filter(({ condition }) => condition !== "healthy");
      const unhealthy = new Map(bad.map(({ name, why }) => [name, why]));
      await this.#options.gateways.set(frontsOf(registry, scene, this.state, unhealthy));
    }
    return `${this.ledger.doubt}: nothing is switched or stopped on what the version before it says; activate or adopt a scene to go on`;
  }

  /** Binds what runs to identities; starts and stops nothing. Throws scene_refused with every reason. */
  adopt(name: string): Promise<void> {
    return this.#alone(`an adoption of ${name}`, async () => {
      const registry = this.#options.registry();
      const scene = findScene(registry, name);
      this.ledger.refuseLost();
      const launches = await this.#options.servers.launches();
      const models = await adoptScene({ registry, scene, state: this.state, launches });
      this.ledger.settleDoubt();
      await this.ledger.write((state) => ({ ...committed(state, name), models }));
      await this.#options.gateways.set(frontsOf(registry, scene, this.state));
    });
  }

  /** Throws scene_failed, naming what did not end. */
  stop(job: Job): Promise<void> {
    return this.#alone("a stop", async () => {
      this.ledger.refuseDoubt();
      const { active, models } = this.state;
      const legacy = [...models].find(([, record]) => record.legacy !== undefined);
      if (legacy !== undefined)
        throw new Failure("scene_refused", `${legacy[0]} is not stopped: ${legacy[1].legacy ?? ""}; stop it yourself`);
      await this.ledger.write({ desired: null, transition: null });
      await this.#refuseAll("the scene was stopped");
      const began = this.#options.clock.monotonicMs();
      await stopAll(this.#tools(job.emit, this.#registryOrNone()), [...models.keys()], (model, phase, text = "") =>
        job.emit({ kind: "model", model, phase, text, ms: this.#options.clock.monotonicMs() - began }),
      );
      await this.ledger.write((state) => ({ active: null, lastKnownGood: active ?? state.lastKnownGood }));
    });
  }

  /** Starts again what does not run of the active scene, and serves it once it is healthy; what is wrong, else. */
  restart(model: string, job: Job): Promise<string | undefined> {
    const { active } = this.state;
    if (active === null) return Promise.resolve("no scene is active");
    return this.#alone(`a restart of ${model}`, async () => {
      const fault = await this.#bring(active, job);
      if (fault !== undefined) await this.ledger.write({ transition: null });
      return fault;
    });
  }

  /** A switch that is under way fails, and the former scene is restored once there is memory for it. */
  abortSwitch(): void {
    this.#abort.abort();
  }

  /** Stops one model of the active scene for the good of the machine; it is started again when that is over. */
  shed(model: string, why: string): Promise<void> {
    return this.#alone(`giving up ${model}`, async () => {
      await stopAll(
        this.#tools(() => {}, this.#registryOrNone()),
        [model],
        () => {},
      );
      await this.noteError(`${model} was stopped: ${why}`);
    });
  }

  /** restore: how the way back ended. */
  async noteError(error: string, restore: string | null = null): Promise<void> {
    await this.ledger.write((state) => ({ lastError: { at: this.#now(), scene: state.active, error, restore } }));
  }

  /** Of the active scene, the most important first; none when scenes.yaml does not tell. */
  activeModels(): readonly string[] {
    const { active } = this.state;
    return active === null ? [] : (this.#registryOrNone()?.scenes.get(active)?.models ?? []);
  }

  /** What runs can be stopped without scenes.yaml too. */
  #registryOrNone(): Registry | undefined {
    try {
      return this.#options.running();
    } catch {
      return undefined;
    }
  }

  closeGateways(): Promise<void> {
    return this.#options.gateways.close();
  }

  /** True on a node without gateways. */
  areGatewaysUp(): Promise<boolean> {
    return this.#options.running().gateways.size === 0 ? Promise.resolve(true) : this.#options.gateways.isUp();
  }

  /** Tells the gateways what is healthy now. */
  async serve(unhealthy: ReadonlyMap<string, string>): Promise<void> {
    const { active } = this.state;
    if (active === null || this.#busy !== undefined) return;
    const registry = this.#options.running();
    const scene = registry.scenes.get(active);
    if (scene !== undefined) await this.#options.gateways.set(frontsOf(registry, scene, this.state, unhealthy));
  }

  observe(): Promise<readonly Observed[]> {
    return observeAll(this.state, this.#options.running());
  }

  fronts(): readonly Front[] {
    const registry = this.#options.running();
    const scene = registry.scenes.get(this.state.active ?? "");
    return scene === undefined ? [] : frontsOf(registry, scene, this.state);
  }

  #tools(emit: Emit, registry: Registry | undefined): SwitchTools {
    const { servers, gateways, clock, available, recoveryMs } = this.#options;
    const { onStep = () => Promise.resolve() } = this.#options;
    const graceOf = (model: string): number => registry?.models.get(model)?.stopGraceMs ?? GRACE_MS;
    return { servers, ledger: this.ledger, gateways, clock, emit, onStep, available, recoveryMs, graceOf };
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString();
  }
}
