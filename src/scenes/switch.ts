// SPDX-License-Identifier: Apache-2.0
// Carries a plan out. Rules: it does nothing that the plan does not list; a stop counts when nothing of the model is left; a
// start counts when the model's own process told its marker; the first fault ends it, and says which.

import type { Clock } from "../std/clock.ts";
import { Failure, messageOf } from "../std/errors.ts";
import type { Emit, ModelPhase } from "./events.ts";
import type { Front, GatewayPort } from "./fronts.ts";
import type { OnStep, SceneLedger } from "./ledger.ts";
import type { Available } from "./memory.ts";
import type { Plan } from "./plan.ts";
import type { Model } from "./model.ts";
import type { Servers, StartedModel } from "./servers.ts";
import type { ModelRecord, SceneState } from "./state.ts";

export type SwitchTools = {
  readonly servers: Servers;
  readonly ledger: SceneLedger;
  readonly gateways: GatewayPort;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly onStep: OnStep;
  readonly available: () => Available | undefined;
  /** How long memory that stops should have given back is waited for. */
  readonly recoveryMs: number | undefined;
  readonly graceOf: (model: string) => number;
};

export type SwitchInput = {
  readonly plan: Plan;
  /** Of the target, by name. */
  readonly models: ReadonlyMap<string, Model>;
  /** What the gateways show while nothing is served, and at the end. */
  readonly holding: readonly Front[];
  readonly serving: () => readonly Front[];
  readonly signal: AbortSignal;
};

/** A process that ended may give its memory back a while later. */
const RECOVERY_MS = 60_000;
const RECOVERY_LOOK_MS = 100;

/** Throws scene_failed with every fault of the phase that failed. */
export async function carryOut(tools: SwitchTools, input: SwitchInput): Promise<void> {
  const { plan, holding, serving, signal } = input;
  const began = tools.clock.monotonicMs();
  const say = (model: string, phase: ModelPhase, text = ""): void =>
    tools.emit({ kind: "model", model, phase, text, ms: tools.clock.monotonicMs() - began });
  for (const model of plan.keep) say(model, "kept");
  for (const model of plan.start) say(model, "waiting");
  const flip = async (fronts: readonly Front[]): Promise<void> => {
    await tools.onStep("before the gateways are told");
    await tools.gateways.set(fronts);
    await tools.onStep("after the gateways were told");
  };
  for (const phase of phasesOf(plan))
    switch (phase) {
      case "forget":
        await stopAll(tools, plan.forget, () => {});
        break;
      case "hold":
        await flip(holding);
        if (plan.stop.length > 0) await tools.gateways.drained(signal);
        break;
      case "stop":
        await stopAll(tools, plan.stop, say);
        break;
      case "start":
        await startAll(tools, input, say);
        break;
      case "flip":
        await flip(serving());
        if (plan.isMakeBeforeBreak) await tools.gateways.drained(signal);
        break;
      default:
        phase satisfies never;
    }
}

/** Stops and starts of one kind stand together in a plan, and run side by side. */
function phasesOf({ steps }: Plan): readonly Plan["steps"][number]["kind"][] {
  return steps.map(({ kind }) => kind).filter((kind, index, all) => kind !== all[index - 1]);
}

type Say = (model: string, phase: ModelPhase, text?: string) => void;

export async function stopAll(tools: SwitchTools, models: readonly string[], say: Say): Promise<void> {
  const { ledger } = tools;
  const faults = await Promise.all(
    models.map(async (name) => {
      const record = ledger.state.models.get(name);
      if (record === undefined) return undefined;
      say(name, "stopping");
      const left = await stopOne(tools, name, record);
      say(name, left === undefined ? "stopped" : "failed", left);
      return left === undefined ? undefined : `${name} was not stopped: ${left}`;
    }),
  );
  failWith(faults);
}

/** It leaves the state only when nothing of it runs. */
async function stopOne(tools: SwitchTools, name: string, record: ModelRecord): Promise<string | undefined> {
  const { servers, ledger, graceOf, onStep } = tools;
  try {
    await onStep(`before ${name} is stopped`);
    const left = await servers.stop(record, graceOf(name));
    if (left !== undefined) return left;
    await onStep(`after ${name} was stopped`);
    await ledger.setModel(name, undefined);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

async function startAll(tools: SwitchTools, input: SwitchInput, say: Say): Promise<void> {
  const { plan, models, signal } = input;
  await recovered(tools, plan, signal);
  // The first that fails ends the waiting of the others.
  const first = new AbortController();
  const faults = await Promise.all(
    plan.start.map(async (name) => {
      const model = models.get(name);
      if (model === undefined) return `${name} is not in scenes.yaml`;
      const fault = await startOne({
        tools,
        model,
        scene: plan.scene,
        say,
        signal: AbortSignal.any([signal, first.signal]),
      });
      if (fault !== undefined && !first.signal.aborted) first.abort();
      return fault === undefined || fault === GIVEN_UP ? undefined : `${name}: ${fault}`;
    }),
  );
  failWith(faults);
  if (signal.aborted) throw new Failure("scene_failed", "it was interrupted");
}

const GIVEN_UP = "it was given up";

type StartOne = {
  readonly tools: SwitchTools;
  readonly model: Model;
  readonly scene: string;
  readonly say: Say;
  readonly signal: AbortSignal;
};

/** Undefined when it is ready; else why not. It stays in the state until it is stopped. */
export async function startOne({ tools, model, scene, say, signal }: StartOne): Promise<string | undefined> {
  const { name } = model;
  try {
    if (signal.aborted) return GIVEN_UP;
    say(name, "starting");
    const started = await launchOne(tools, model, scene);
    say(name, "loading");
    const fault = await tools.servers.waitReady(started, model, signal, (rung, why) =>
      say(name, "loading", `${rung}: ${why}`),
    );
    say(name, fault === undefined ? "healthy" : "failed", fault);
    return fault;
  } catch (error) {
    say(name, "failed", messageOf(error));
    return messageOf(error);
  }
}

async function launchOne(tools: SwitchTools, model: Model, scene: string): Promise<StartedModel> {
  const { servers, ledger, onStep, graceOf } = tools;
  // What is left of one that died; its record makes room for the next.
  const before = ledger.state.models.get(model.name);
  const left = before === undefined ? undefined : await servers.stop(before, graceOf(model.name));
  if (left !== undefined) throw new Failure("scene_failed", left);
  for (;;) {
    const generation = await ledger.nextGeneration();
    await onStep(`before ${model.name} is started`);
    const started = await servers.start({
      model,
      scene,
      generation,
      record: (record) => ledger.setModel(model.name, record),
    });
    await onStep(`after ${model.name} was started`);
    if (started !== undefined) return started;
  }
}

/** A process that ended may give its memory back a while later, above all a GPU's: what counts is what is measured. */
async function recovered(tools: SwitchTools, plan: Plan, signal: AbortSignal): Promise<void> {
  const { clock, available, emit, recoveryMs = RECOVERY_MS } = tools;
  const { neededBytes, floorBytes } = plan.memory;
  if (neededBytes === 0) return;
  const began = clock.monotonicMs();
  for (let isSaid = false; ; ) {
    const now = available();
    const short = now === undefined ? 0 : neededBytes + floorBytes - now.bytes;
    if (short <= 0 || signal.aborted) return;
    const ms = clock.monotonicMs() - began;
    if (ms >= recoveryMs)
      throw new Failure(
        "scene_failed",
        `memory did not come back: ${neededBytes} bytes are needed and ${floorBytes} are the floor, ${now?.bytes ?? 0} are available, ${short} are missing`,
      );
    if (!isSaid) emit({ kind: "note", text: `waiting for ${short} bytes of memory`, ms });
    isSaid = true;
    await clock.sleep(RECOVERY_LOOK_MS, signal);
  }
}

function failWith(faults: readonly (string | undefined)[]): void {
  const all = faults.filter((fault) => fault !== undefined);
  if (all.length > 0) throw new Failure("scene_failed", all.join("; "));
}

type Orphans = { readonly servers: Servers; readonly state: SceneState; readonly emit: Emit };

/** Launches of models that no state knows: of a life that died between a launch and its record. */
export async function endOrphans({ servers, state, emit }: Orphans, graceMs: number): Promise<void> {
  const known = new Set([...state.models.values()].flatMap(({ launchId }) => launchId ?? []));
  for (const launchId of await servers.orphans(known)) {
    const left = await servers.endOrphan(launchId, graceMs);
    emit({ kind: "note", text: left ?? `${launchId}, which no state knew, was ended`, ms: 0 });
  }
}
