// SPDX-License-Identifier: Apache-2.0
// Queue attempts on one node: the real locker and boundary in an agent that dies anywhere, over disks, processes and a
// controller that misbehave. P7, P9, P10 and P11 hold after every step, and at the end every job has its verdict.

import { openEnvelope } from "../../src/locker/envelope.ts";
import { isRolledBack } from "../../src/locker/locker.ts";
import { type Boundary, BOUNDARY_TENANT } from "../../src/boundary/boundary.ts";
import { boundaryFormat } from "../../src/boundary/record.ts";
import { type AgentWorld, SimulatedAgent } from "./agent.ts";
import { Chance } from "./chance.ts";
import { Controller } from "./controller.ts";
import { SimulatedDisk } from "./disk.ts";
import { Launches, type Ref } from "./launches.ts";
import { ProcessTable, type Running } from "./processes.ts";
import { mishapOf, mixOf, must, type RunEnd, type RunOptions, Violation } from "./run.ts";
import { type Life, settled, Steps } from "./steps.ts";
import { breakDisks } from "./variant-disks.ts";

const STEPS_MAX = 4000;

type Waiter = { readonly life: Life; readonly take: () => boolean };

class AttemptsRun {
  readonly #options: RunOptions;
  readonly #chance: Chance;
  readonly #mix;
  readonly #rates: { readonly events: number; readonly harm: number };
  readonly #disks: readonly SimulatedDisk[];
  readonly #fingerprint: Uint8Array;
  readonly #table: ProcessTable;
  readonly #launches: Launches;
  readonly #controller: Controller;
  readonly steps: Steps;
  readonly #strangers: Running[] = [];
  #waiters: Waiter[] = [];
  #life: Life = { isOver: true };
  #agent: SimulatedAgent | undefined;
  #isCalm = false;
  #isTampered = false;
  #isTurnedBack = false;
  #isResetTried = false;
  #fault: unknown;
  /** (job, epoch) that ran, since the last time that an operator accepted that jobs may repeat. */
  readonly #ran = new Set<string>();

  constructor(options: RunOptions) {
    this.#options = options;
    this.#chance = new Chance(options.seed);
    this.#mix = mixOf(this.#chance);
    this.#rates = { events: 0.2 + this.#chance.fraction() * 0.5, harm: this.#chance.happens(0.5) ? 0.06 : 0 };
    this.#disks = Array.from(
      { length: 1 + this.#chance.below(2) },
      (_, index) => new SimulatedDisk(`slot-${index}`, this.#chance),
    );
    this.#fingerprint = this.#chance.bytes(32);
    const comparesStart = options.variant !== "pid-without-start";
    this.#table = new ProcessTable({ chance: this.#chance, hasInodes: this.#chance.happens(0.5), comparesStart });
    this.#launches = new Launches({
      chance: this.#chance,
      table: this.#table,
      onRun: (ref) => this.#onRun(ref),
      onGate: (ref) => this.#onGate(ref),
    });
    this.#controller = new Controller(this.#chance, 1 + this.#chance.below(4));
    this.steps = new Steps({
      chance: this.#chance,
      mishapAt: (number, mayFail) => this.#mishapAt(number, mayFail),
      end: (kind) => this.#end(kind),
    });
  }

  #mishapAt(number: number, mayFail: boolean) {
    if (this.#isCalm) return undefined;
    return mishapOf(this.#options.single, { number, mayFail, chance: this.#chance, mix: this.#mix });
  }

  #end(kind: "kill" | "power"): void {
    this.#life.isOver = true;
    if (kind !== "power") return;
    for (const disk of this.#disks) disk.cutPower();
    this.#launches.powerCut();
    this.#table.reboot();
  }

  /** P9 in the moment in which a job begins to run. */
  #onRun(ref: Ref): void {
    const key = `${ref.jobId}/${ref.epoch}`;
    this.steps.note(`${key} runs`);
    must(!this.#ran.has(key), `P9: ${key} is started twice`);
    must(!this.#launches.isRunning(ref.jobId), `P9: ${key} is started while another attempt of it runs`);
    this.#ran.add(key);
  }

  /** What may run from now on is known in every slot, for good. */
  #onGate(ref: Ref): void {
    for (const disk of this.#disks)
      must(
        this.#isKnown(disk, ref),
        `P9: the gate of ${ref.jobId}/${ref.epoch} opens, and ${disk.place} does not know it`,
      );
  }

  #isKnown(disk: SimulatedDisk, ref: Ref): boolean {
    const opened = openEnvelope(disk.lasting(BOUNDARY_TENANT) ?? new Uint8Array());
    if (opened.kind !== "envelope") return false;
    const decoded = boundaryFormat.decode(opened.envelope.record);
    return (
      decoded.kind === "ok" &&
      decoded.body.attempts.some(({ jobId, epoch }) => jobId === ref.jobId && String(epoch) === ref.epoch)
    );
  }

  async run(): Promise<void> {
    const lives = this.#options.single === undefined ? 2 + this.#chance.below(4) : 2;
    for (let life = 1; life <= lives; life++) {
      await this.#live(life === lives ? 400 : 20 + this.#chance.below(150));
      if (this.#options.single === undefined) this.#betweenLives();
    }
    this.#isCalm = true;
    for (const disk of this.#disks) disk.unreadable = undefined;
    await this.#live(STEPS_MAX);
    must(this.#controller.isDone, `P11: jobs wait for ever: ${this.#controller.unfinished}`);
    must(this.#launches.refs.length === 0, "P11: a launch directory is left");
  }

  #world(): AgentWorld {
    return {
      chance: this.#chance,
      steps: this.steps,
      launches: this.#launches,
      table: this.#table,
      controller: this.#controller,
      variant: this.#options.variant,
      until: (life, name, look) => this.#until(life, name, look),
      isCalm: () => this.#isCalm,
      onLoaded: (boundary) => this.#onLoaded(boundary),
      onReset: () => this.#onReset(),
      onFault: (error) => (this.#fault ??= error),
    };
  }

  #until<Seen>(life: Life, name: string, look: () => Seen | undefined): Promise<Seen> {
    return new Promise((resolve) => {
      const take = (): boolean => {
        const seen = look();
        if (seen === undefined) return false;
        void this.steps.effect(life, name, () => seen).then(resolve);
        return true;
      };
      this.#waiters.push({ life, take });
    });
  }

  /** Those that find what they wait for go on. */
  #look(): void {
    this.#waiters = this.#waiters.filter(({ life, take }) => !life.isOver && !take());
  }

  #onLoaded(boundary: Boundary): boolean {
    const { state } = boundary;
    const lineage = lineageOf(this.#disks[0]);
    const isNew = !this.#controller.evidence.knows(lineage);
    // A reset that died after its last step is done all the same.
    if (this.#isResetTried && state.kind === "trusted" && isNew) this.#onReset();
    if (state.kind !== "untrusted") {
      must(!this.#isTurnedBack, "P10: disks that were turned back are trusted");
      this.#isTampered = this.#disks.some(({ unreadable }) => unreadable !== undefined);
      return false;
    }
    must(this.#isTampered, `P11: healthy disks end untrusted: ${state.why}`);
    this.#isResetTried = this.#isCalm || this.#chance.happens(0.5);
    return this.#isResetTried;
  }

  #onReset(): void {
    this.#isTampered = this.#disks.some(({ unreadable }) => unreadable !== undefined);
    this.#isTurnedBack = false;
    this.#isResetTried = false;
    this.#ran.clear();
  }

  async #live(stepsMax: number): Promise<void> {
    const life: Life = { isOver: false };
    this.#life = life;
    this.#fault = undefined;
    const slots = this.#disks.map((disk) => disk.slotOf(life, this.steps));
    const broken = breakDisks(slots, this.#options.variant, this.#chance);
    const agent = new SimulatedAgent(this.#world(), life, broken, this.#fingerprint);
    this.#agent = agent;
    void agent.run().catch((error: unknown) => {
      // A disk that fails during a reset or a load ends the life; the next one tries again.
      if (error instanceof Violation || !(error instanceof Error) || !("code" in error)) this.#fault = error;
      life.isOver = true;
    });
    await settled();
    for (let step = 0; !life.isOver; step++) {
      this.#table.pass(this.#chance.below(8));
      this.#look();
      if (this.#chance.happens(this.#rates.events)) this.#happen();
      else if (!(await this.steps.next()) && !this.#happen()) break;
      if (this.#fault !== undefined) break;
      this.#hear();
      if (
        step > stepsMax ||
        (this.#isCalm && agent.isIdle && this.#controller.isDone && this.#launches.refs.length === 0)
      )
        break;
      if (step >= STEPS_MAX) throw new Violation(`P11: it goes on for ever: ${this.#controller.unfinished}`);
    }
    life.isOver = true;
    if (this.#fault !== undefined) throw this.#fault instanceof Error ? this.#fault : new Error(String(this.#fault));
  }

  /** A heartbeat tells the controller what the node knows, now and then. */
  #hear(): void {
    const agent = this.#agent;
    if (agent?.isOpen !== true || agent.boundary.state.kind !== "trusted" || this.#chance.happens(0.5)) return;
    const { evidence } = agent.boundary;
    if (evidence !== undefined) this.#controller.evidence.hear(evidence);
  }

  /** Something happens outside of the agent; false when nothing can. */
  #happen(): boolean {
    if (!this.#isCalm && this.#chance.happens(this.#rates.harm)) {
      const harm = this.#chance.pick(["kill shim", "lease", "stranger"] as const);
      this.steps.note(harm);
      if (harm === "kill shim") {
        this.#launches.killShim();
        if (this.#chance.happens(0.5)) this.#comeStranger();
      } else if (harm === "lease") this.#controller.expireLease();
      else this.#comeStranger();
      return true;
    }
    const stranger = this.#strangers.at(-1);
    const events = [...this.#launches.events(), ...(stranger === undefined ? [] : [() => this.#goStranger()])];
    // Nothing is done any more: a lease that nobody renews runs out.
    if (events.length === 0 && this.#agent?.isIdle === true && !this.#controller.isDone) {
      this.steps.note("lease");
      this.#controller.expireLease();
      return true;
    }
    if (events.length === 0) return false;
    this.#chance.pick(events)();
    return true;
  }

  /** Another process, which may have the pid of one of ours. */
  #comeStranger(): void {
    const stranger = this.#table.spawn();
    if (stranger !== undefined) this.#strangers.push(stranger);
  }

  #goStranger(): void {
    const stranger = this.#strangers.shift();
    if (stranger !== undefined) this.#table.end(stranger);
  }

  #betweenLives(): void {
    if (this.#chance.happens(0.3)) this.#end("power");
    // A stranger may sit where a process of ours was.
    if (this.#chance.happens(0.5)) this.#launches.killShim();
    if (this.#chance.happens(0.5)) this.#comeStranger();
    if (this.#chance.happens(0.4)) this.#launches.loseDirectories();
    if (!this.#chance.happens(0.3)) return;
    // A newer image would undo it.
    if (this.#isTurnedBack) return;
    const disk = this.#chance.pick(this.#disks);
    const what = this.#chance.pick(["wipe", "rot", "turn back", "all back", "swap", "unreadable"] as const);
    if (what === "all back") return this.#turnAllBack();
    if (!this.#disks.some((other) => other !== disk && this.#isNewest(other))) return;
    this.steps.note(`between lives: ${what} ${disk.place}`);
    if (what === "wipe") return disk.wipe();
    this.#isTampered = true;
    if (what === "rot") disk.rot();
    else if (what === "unreadable") disk.unreadable = "EIO";
    else if (what === "turn back") disk.turnBack();
    else disk.put(BOUNDARY_TENANT, this.#chance.bytes(400));
  }

  /** Only where others know more than the images: what nobody remembers cannot be missed. */
  #turnAllBack(): void {
    for (const disk of this.#disks) disk.turnBack();
    const isOld = this.#disks.every((disk) => {
      const opened = openEnvelope(disk.lasting(BOUNDARY_TENANT) ?? new Uint8Array());
      if (opened.kind !== "envelope") return false;
      return isRolledBack({ kind: "adopted", ...opened.envelope }, this.#controller.evidence.all);
    });
    this.steps.note(`all disks are turned back${isOld ? "" : ", and nobody knows more"}`);
    this.#isTampered = true;
    this.#isTurnedBack = isOld;
    // What is forgotten and told by nobody may run again: not promised.
    if (!isOld) this.#ran.clear();
  }

  /** The last thing that the node said of itself is in it. */
  #isNewest(disk: SimulatedDisk): boolean {
    const opened = openEnvelope(disk.lasting(BOUNDARY_TENANT) ?? new Uint8Array());
    const last = this.#agent?.isOpen === true ? this.#agent.boundary.evidence : undefined;
    if (disk.unreadable !== undefined || opened.kind !== "envelope" || last === undefined) return false;
    return Buffer.compare(opened.envelope.lineage, last.lineage) === 0 && opened.envelope.sequence >= last.sequence;
  }
}

/** As programs see it; empty when there is none. */
function lineageOf(disk: SimulatedDisk | undefined): Uint8Array {
  const reading = disk?.read(BOUNDARY_TENANT);
  const opened = openEnvelope(reading?.kind === "bytes" ? reading.bytes : new Uint8Array());
  return opened.kind === "envelope" ? opened.envelope.lineage : new Uint8Array();
}

export async function runAttempts(options: RunOptions): Promise<RunEnd> {
  const run = new AttemptsRun(options);
  let violation: string | undefined;
  try {
    await run.run();
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    violation = error.message;
  }
  return { violation, steps: run.steps.count, trail: run.steps.trail };
}
