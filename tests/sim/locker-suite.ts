// SPDX-License-Identifier: Apache-2.0
// The real locker over simulated disks: lives that load and store side by side and end anywhere; disks that fail, are wiped,
// swapped, turned back or rot. Promise P10: an acknowledged record is in every slot, never goes backwards, stale is never adopted.

import { openEnvelope } from "../../src/locker/envelope.ts";
import { isRolledBack, type Loaded, Locker, type Tenant } from "../../src/locker/locker.ts";
import { codeOf } from "../../src/std/errors.ts";
import { Chance } from "./chance.ts";
import { SimulatedDisk } from "./disk.ts";
import { RememberedEvidence } from "./evidence.ts";
import { type Mix, mishapOf, mixOf, must, type RunEnd, type RunOptions, Violation } from "./run.ts";
import { type Life, settled, Steps } from "./steps.ts";
import { breakDisks } from "./variant-disks.ts";

const NAME = "tenant";
const STEPS_MAX = 3000;

/** A record is the ids whose stores made it, in order. */
const idsIn = (record: Uint8Array): readonly string[] => Buffer.from(record).toString().split(",").slice(1);
const withId = (record: Uint8Array | undefined, id: string): Uint8Array =>
  Buffer.from(`${Buffer.from(record ?? []).toString()},${id}`);

class LockerRun {
  readonly #options: RunOptions;
  readonly #chance: Chance;
  readonly #mix: Mix;
  readonly #disks: readonly SimulatedDisk[];
  readonly #fingerprint: Uint8Array;
  readonly steps: Steps;
  #life: Life = { isOver: true };
  #isCalm = false;
  #lastId = 0;
  /** Ids whose store was acknowledged in the present lineage. */
  #acked = new Set<string>();
  /** Ids that must never be seen again. */
  readonly #gone = new Set<string>();
  /** What others have heard of this node. */
  readonly #evidence = new RememberedEvidence();
  /** A slot holds what this node did not leave there; a discard may follow. */
  #isTampered = false;
  /** No slot holds the newest any more. */
  #isTurnedBack = false;
  #isResetTried = false;
  #fault: unknown;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#chance = new Chance(options.seed);
    this.#mix = mixOf(this.#chance);
    this.#disks = Array.from(
      { length: 1 + this.#chance.below(3) },
      (_, index) => new SimulatedDisk(`slot-${index}`, this.#chance),
    );
    this.#fingerprint = this.#chance.bytes(32);
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
    if (kind === "power") for (const disk of this.#disks) disk.cutPower();
  }

  async run(): Promise<void> {
    const lives = this.#options.single === undefined ? 3 + this.#chance.below(4) : 2;
    for (let life = 0; life < lives; life++) {
      await this.#live();
      if (this.#options.single === undefined) this.#betweenLives();
    }
    this.#isCalm = true;
    for (const disk of this.#disks) disk.unreadable = undefined;
    // A reset may be due, and then a life that shows that it worked.
    await this.#live();
    await this.#live();
    must(!this.#isTampered, "healthy disks are not trusted after a reset");
  }

  async #live(): Promise<void> {
    const life: Life = { isOver: false };
    this.#life = life;
    const slots = this.#disks.map((disk) => disk.slotOf(life, this.steps));
    const broken = breakDisks(slots, this.#options.variant, this.#chance);
    const tenant = new Locker({ slots: broken, fingerprint: this.#fingerprint, random: this.#chance }).tenant(NAME);
    this.#fault = undefined;
    const program = this.#program(tenant, life)
      .catch((error: unknown) => (this.#fault = error))
      .finally(() => (life.isOver = true));
    void program;
    await settled();
    while (!life.isOver && (await this.steps.next())) {
      this.#note(tenant);
      must(this.steps.count < STEPS_MAX, "the run does not end");
    }
    life.isOver = true;
    if (this.#fault !== undefined) throw this.#fault instanceof Error ? this.#fault : new Error(String(this.#fault));
  }

  /** After each step. */
  #note(tenant: Tenant): void {
    const { evidence } = tenant;
    if (evidence !== undefined) this.#evidence.hear(evidence);
    if (this.#isTampered || this.#isTurnedBack) return;
    const seen = new Set<string>();
    for (const disk of this.#disks) {
      const reading = disk.read(NAME);
      for (const bytes of [reading.kind === "bytes" ? reading.bytes : undefined, disk.lasting(NAME)])
        if (bytes !== undefined) seen.add(Buffer.from(bytes.subarray(132, 164)).toString("latin1"));
    }
    must(seen.size <= 2, `P10: the disks hold ${seen.size} distinct envelopes`);
  }

  async #program(tenant: Tenant, life: Life): Promise<void> {
    const loaded = await tenant.load();
    if (!this.#judgeLoad(loaded)) {
      this.#isTampered = true;
      this.#isResetTried = true;
      try {
        await tenant.reset(Buffer.from(""));
      } catch (error) {
        if (codeOf(error) !== "store_failed") throw error;
        return;
      }
      this.#noteReset();
      this.#isTampered = this.#disks.some(({ unreadable }) => unreadable !== undefined);
    } else if (loaded.kind === "empty" || tenant.evidence !== undefined) this.#isTampered = false;
    const rejected = new Set<string>();
    for (let group = this.#isCalm ? 1 : this.#chance.below(5); group > 0; group--) {
      const size = 1 + this.#chance.below(4);
      await Promise.all(Array.from({ length: size }, () => this.#store(tenant, rejected, life)));
    }
    if (this.#isCalm) must(rejected.size === 0, "P11: a healthy disk refuses a store");
  }

  #noteReset(): void {
    for (const id of this.#acked) this.#gone.add(id);
    this.#acked.clear();
    this.#isTurnedBack = false;
    this.#isResetTried = false;
  }

  /** False when nothing may be trusted. */
  #judgeLoad(loaded: Loaded): boolean {
    if (loaded.kind === "discard") {
      must(this.#isTampered, `P11: healthy disks are discarded: ${loaded.text}`);
      return false;
    }
    // One that failed at its last step is done all the same.
    if (this.#isResetTried && loaded.kind === "adopted" && !this.#evidence.knows(loaded.lineage)) this.#noteReset();
    const isCaught = isRolledBack(loaded, this.#evidence.all);
    if (isCaught) {
      must(this.#isTurnedBack, "P11: healthy disks look turned back");
      return false;
    }
    const ids = new Set(loaded.kind === "empty" ? [] : idsIn(loaded.record));
    const lost = [...this.#acked].find((id) => !ids.has(id));
    must(lost === undefined, `P10: store ${lost} was acknowledged and is not in what was adopted`);
    const risen = [...this.#gone].find((id) => ids.has(id));
    must(risen === undefined, `P10: store ${risen} had failed for good and came back`);
    return true;
  }

  async #store(tenant: Tenant, rejected: Set<string>, life: Life): Promise<void> {
    const id = String(++this.#lastId);
    const throws = this.#chance.happens(0.1);
    try {
      await tenant.store((record) => {
        if (throws) throw new Error("this change throws");
        return withId(record, id);
      });
    } catch (error) {
      if (throws && codeOf(error) === "") this.#gone.add(id);
      else if (codeOf(error) === "store_failed") rejected.add(id);
      else throw error;
      return;
    }
    if (life.isOver) return;
    must(!throws, "a change that threw was acknowledged");
    this.#acked.add(id);
    for (const disk of this.#disks) {
      const opened = openEnvelope(disk.lasting(NAME) ?? new Uint8Array());
      const ids = opened.kind === "envelope" ? idsIn(opened.envelope.record) : [];
      must(ids.includes(id), `P10: store ${id} is acknowledged and not in ${disk.place}`);
      const undone = [...rejected].find((other) => ids.includes(other));
      must(undone === undefined, `P10: store ${undone} was refused, and a later one holds it`);
    }
    for (const other of rejected) this.#gone.add(other);
  }

  #betweenLives(): void {
    if (!this.#chance.happens(0.5)) return;
    const disk = this.#chance.pick(this.#disks);
    const others = this.#disks.filter((other) => other !== disk);
    const isSafe = others.some((other) => this.#isWhole(other));
    const what = this.#chance.pick(["wipe", "swap", "turn back", "rot", "unreadable", "all back", "power"] as const);
    this.steps.note(`between lives: ${what} ${disk.place}`);
    if (what === "power") this.#end("power");
    else if (what === "all back") {
      this.#isTurnedBack = true;
      this.#isTampered = true;
      for (const each of this.#disks) each.turnBack();
      // What nobody was told of cannot be missed: a reset that was undone before it was told, with all that it gave up.
      if (!this.#disks.every((each) => this.#isToldOf(each))) this.#gone.clear();
    } else if (isSafe) this.#harm(disk, what);
  }

  #harm(disk: SimulatedDisk, what: "wipe" | "swap" | "turn back" | "rot" | "unreadable"): void {
    if (what === "wipe") return disk.wipe();
    this.#isTampered = true;
    if (what === "rot") disk.rot();
    else if (what === "unreadable") disk.unreadable = this.#chance.happens(0.5) ? "EIO" : undefined;
    else if (what === "turn back") disk.turnBack();
    else disk.put(NAME, this.#foreign());
  }

  /** From the disk of another node. */
  #foreign(): Uint8Array {
    const own = this.#disks.map((disk) => disk.lasting(NAME)).find((bytes) => bytes !== undefined);
    const bytes = Uint8Array.from(own ?? this.#chance.bytes(300));
    bytes.set(this.#chance.bytes(32), 12);
    return bytes;
  }

  /** Others know of something newer. */
  #isToldOf(disk: SimulatedDisk): boolean {
    const opened = openEnvelope(disk.lasting(NAME) ?? new Uint8Array());
    return opened.kind === "envelope" && isRolledBack({ kind: "adopted", ...opened.envelope }, this.#evidence.all);
  }

  /** Whether this slot alone would keep all that was acknowledged, and all that others have heard of. */
  #isWhole(disk: SimulatedDisk): boolean {
    if (disk.unreadable !== undefined) return false;
    const opened = openEnvelope(disk.lasting(NAME) ?? new Uint8Array());
    if (opened.kind !== "envelope") return this.#evidence.all.length === 0 && disk.lasting(NAME) === undefined;
    const ids = new Set(idsIn(opened.envelope.record));
    if (this.#isToldOf(disk)) return false;
    return [...this.#acked].every((id) => ids.has(id));
  }
}

export async function runLocker(options: RunOptions): Promise<RunEnd> {
  const run = new LockerRun(options);
  let violation: string | undefined;
  try {
    await run.run();
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    violation = error.message;
  }
  return { violation, steps: run.steps.count, trail: run.steps.trail };
}
