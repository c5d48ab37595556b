// SPDX-License-Identifier: Apache-2.0
// An agent's life in the simulator: the real locker and boundary, and the real protocol around them. It adjudicates what it
// finds, claims, prepares, stores, tells the start, opens the gate, watches, tells the end, closes.

import {
  adjudicate,
  Boundary,
  BOUNDARY_TENANT,
  identityOfStored,
  resetBoundary,
  storedIdentity,
} from "../../src/boundary/boundary.ts";
import { type AttemptEntry } from "../../src/boundary/boundary.ts";
import { Locker, type SlotDisk, type Tenant } from "../../src/locker/locker.ts";
import type { Identity } from "../../src/std/process.ts";
import type { Chance } from "./chance.ts";
import type { Controller } from "./controller.ts";
import { type Launches, launchIdOf, type Ref } from "./launches.ts";
import type { ProcessTable } from "./processes.ts";
import type { Variant } from "./run.ts";
import type { Life, Steps } from "./steps.ts";

const SLOTS = 3;

export type AgentWorld = {
  readonly chance: Chance;
  readonly steps: Steps;
  readonly launches: Launches;
  readonly table: ProcessTable;
  readonly controller: Controller;
  readonly variant: Variant | undefined;
  /** Resolves once the look finds something. */
  readonly until: <Seen>(life: Life, name: string, look: () => Seen | undefined) => Promise<Seen>;
  readonly isCalm: () => boolean;
  /** Asked after the load: true: an operator resets the boundary. */
  readonly onLoaded: (boundary: Boundary) => boolean;
  readonly onReset: () => void;
  readonly onFault: (error: unknown) => void;
};

const keyOf = ({ jobId, epoch }: Ref): string => `${jobId}/${epoch}`;

function recordedIdentity({ identity }: AttemptEntry): Identity | undefined {
  return identity === null ? undefined : identityOfStored(identity);
}

export class SimulatedAgent {
  readonly #world: AgentWorld;
  readonly #life: Life;
  readonly #tenant: Tenant;
  #boundary: Boundary | undefined;
  readonly #busy = new Set<string>();

  constructor(world: AgentWorld, life: Life, slots: readonly SlotDisk[], fingerprint: Uint8Array) {
    this.#world = world;
    this.#life = life;
    this.#tenant = new Locker({ slots, fingerprint, random: world.chance }).tenant(BOUNDARY_TENANT);
  }

  get boundary(): Boundary {
    if (this.#boundary === undefined) throw new Error("bug: the boundary is not open");
    return this.#boundary;
  }

  get isOpen(): boolean {
    return this.#boundary !== undefined;
  }

  /** Nothing is being done, and nothing is left of what was. */
  get isIdle(): boolean {
    return this.isOpen && this.#busy.size === 0 && this.boundary.record.attempts.length === 0;
  }

  #effect<Result>(name: string, act: () => Result): Promise<Result> {
    return this.#world.steps.effect(this.#life, name, act);
  }

  /** Ends only with its life. */
  async run(): Promise<void> {
    const { controller, launches, onLoaded, onReset, chance, isCalm } = this.#world;
    let boundary = await Boundary.open(this.#tenant);
    boundary.noteEvidence(controller.evidence.all);
    if (onLoaded(boundary)) {
      await resetBoundary(this.#tenant);
      onReset();
      boundary = await Boundary.open(this.#tenant);
    }
    this.#boundary = boundary;
    const entries = new Map(boundary.record.attempts.map((entry) => [keyOf(refOf(entry)), entry]));
    const found = await this.#effect("list", () => launches.refs);
    const refs = [...[...entries.values()].map(refOf), ...found.filter((ref) => !entries.has(keyOf(ref)))];
    for (const ref of refs) this.#busy.add(keyOf(ref));
    await this.#effect("hello", () => controller.hello(refs, !isCalm() && chance.happens(0.5)));
    const old = refs.map((ref) => this.#settleOld(ref, entries.get(keyOf(ref))));
    await Promise.all([...old, this.#claim()]);
  }

  async #claim(): Promise<void> {
    const { controller, until, isCalm, onFault } = this.#world;
    for (;;) {
      const ref = await until(this.#life, "claim", () =>
        this.#busy.size < SLOTS && ["trusted", "unwritable"].includes(this.boundary.state.kind)
          ? controller.claim(!isCalm())
          : undefined,
      );
      // An agent remembers what it is busy with. The boundary must not depend on that.
      if (this.#busy.has(keyOf(ref))) {
        if (this.#world.chance.happens(0.5)) void this.#attempt(ref).catch(onFault);
        continue;
      }
      this.#busy.add(keyOf(ref));
      void this.#attempt(ref)
        .catch(onFault)
        .finally(() => this.#busy.delete(keyOf(ref)));
    }
  }

  async #attempt(ref: Ref): Promise<void> {
    const { launches, controller, until } = this.#world;
    if (!(await this.#effect("create", () => launches.create(ref)))) return;
    const isSpawned = await this.#effect("spawn", () => launches.spawn(ref, this.#life));
    const identity = isSpawned ? await until(this.#life, "identity", () => launches.identity(ref)) : "gone";
    if (identity === "gone") return this.#close(ref, "not-started");
    const start = { ...ref, launchId: launchIdOf(ref), identity: storedIdentity(identity) };
    if (this.#world.variant === "store-after-gate") await this.#effect("gate", () => launches.openGate(ref, identity));
    const started = await this.boundary.startAttempt(start);
    if (started.kind !== "admitted") {
      await this.#abandon(ref);
      const isKnown = started.kind === "refused" && started.reason === "already-started";
      return isKnown ? this.#effect("remove", () => launches.remove(ref)) : this.#close(ref, "not-started");
    }
    const isTaken = await this.#tell("start", () => controller.start(ref));
    if (!isTaken) {
      await this.#abandon(ref);
      return this.#close(ref, "not-started");
    }
    await this.#effect("gate", () => launches.openGate(ref, identity));
    await this.#close(ref, await this.#watch(ref, identity));
  }

  /** Gives up before the gate, and waits for the proof that nothing ran. */
  async #abandon(ref: Ref): Promise<void> {
    const { launches, until } = this.#world;
    await this.#effect("close gate", () => launches.closeGate(ref));
    await until(this.#life, "abandoned", () =>
      ["alive", "remains"].includes(launches.look(ref, undefined).kind) ? undefined : true,
    );
  }

  /** To its end; a lost lease stops it. */
  async #watch(ref: Ref, identity: Identity): Promise<string> {
    const { launches, table, controller, until } = this.#world;
    const look = (): string | undefined => {
      const verdict = adjudicate(launches.look(ref, identity));
      return verdict.kind === "adopt" || verdict.kind === "waits"
        ? undefined
        : verdict.kind === "ended"
          ? verdict.outcome
          : verdict.kind;
    };
    const seen = await until(this.#life, "watch", () => look() ?? (controller.isLost(ref) ? "lost" : undefined));
    if (seen !== "lost") return seen;
    await this.#effect("stop", () => {
      const process = table.signal(identity);
      if (process !== undefined) launches.stopProcess(process);
    });
    return until(this.#life, "stopped", look);
  }

  async #settleOld(ref: Ref, entry: AttemptEntry | undefined): Promise<void> {
    const { launches, until } = this.#world;
    const recorded = entry === undefined ? undefined : recordedIdentity(entry);
    const adjudged = await until(this.#life, "adjudicate", () => {
      const verdict = adjudicate(launches.look(ref, recorded));
      return verdict.kind === "waits" && recorded === undefined ? undefined : verdict;
    });
    // The controller may be away for long before it hears of any end.
    for (let turn = this.#world.isCalm() ? 0 : this.#world.chance.below(20); turn > 0; turn--)
      await this.#effect("away", () => {});
    const identity = recorded ?? launches.identity(ref);
    if (adjudged.kind === "ended") await this.#close(ref, adjudged.outcome);
    else if (["adopt", "waits"].includes(adjudged.kind) && identity !== undefined && identity !== "gone")
      await this.#close(ref, await this.#watch(ref, identity));
    else await this.#close(ref, adjudged.kind);
    this.#busy.delete(keyOf(ref));
  }

  async #close(ref: Ref, outcome: string): Promise<void> {
    const { launches, controller } = this.#world;
    await this.boundary.endAttempt(ref, outcome);
    await this.#tell("ending", () => controller.end(ref, outcome));
    await this.boundary.closeAttempt(ref);
    await this.#effect("remove", () => launches.remove(ref));
  }

  /** A call whose question or answer is lost is asked again. */
  async #tell<Answer>(name: string, ask: () => Answer): Promise<Answer> {
    const { chance, isCalm } = this.#world;
    for (;;) {
      const lost = isCalm() ? 1 : chance.fraction();
      if (lost < 0.1) await this.#effect(`${name}: the question is lost`, () => {});
      else if (lost < 0.2) await this.#effect(`${name}: the answer is lost`, () => void ask());
      else return this.#effect(name, ask);
    }
  }
}

function refOf({ jobId, epoch }: AttemptEntry): Ref {
  return { jobId, epoch: String(epoch) };
}
