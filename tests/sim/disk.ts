// SPDX-License-Identifier: Apache-2.0
// A disk under a slot: what programs see, and what is left of it after a power cut. A new file lasts once it is flushed, a
// rename once the directory is; what is not flushed may last or not. It can be wiped, swapped, turned back in time and rot.

import type { Reading, SlotDisk } from "../../src/locker/locker.ts";
import type { Chance } from "./chance.ts";
import type { Life, Steps } from "./steps.ts";

export class SimulatedDisk {
  readonly place: string;
  readonly #chance: Chance;
  /** What programs see. */
  readonly #seen = new Map<string, Uint8Array>();
  /** What a power cut leaves for certain. */
  readonly #lasting = new Map<string, Uint8Array>();
  readonly #temporary = new Map<string, Uint8Array>();
  /** Everything that ever lasted: images that an operator may put back. */
  readonly #images: ReadonlyMap<string, Uint8Array>[] = [];
  /** errno of every read until it is mended. */
  unreadable: string | undefined;

  constructor(place: string, chance: Chance) {
    this.place = place;
    this.#chance = chance;
  }

  /** The disk as one life of a process uses it. */
  slotOf(life: Life, steps: Steps): SlotDisk {
    const effect = <Result>(what: string, act: () => Result): Promise<Result> =>
      steps.effect(life, `${this.place}: ${what}`, act, true);
    return {
      place: this.place,
      read: (name) => steps.effect(life, `${this.place}: read`, () => this.read(name)),
      writeTemporary: (name, bytes) => effect("write", () => void this.#temporary.set(name, bytes)),
      rename: (name) =>
        effect("rename", () => {
          const bytes = this.#temporary.get(name);
          if (bytes === undefined) throw Object.assign(new Error("no temporary file"), { code: "ENOENT" });
          this.#temporary.delete(name);
          this.#seen.set(name, bytes);
        }),
      flushDirectory: () => effect("flush", () => this.#flush()),
      removeTemporary: (name) => effect("remove", () => void this.#temporary.delete(name)),
    };
  }

  read(name: string): Reading {
    if (this.unreadable !== undefined) return { kind: "unreadable", errno: this.unreadable };
    const bytes = this.#seen.get(name);
    return bytes === undefined ? { kind: "missing" } : { kind: "bytes", bytes };
  }

  /** What certainly survives a power cut. */
  lasting(name: string): Uint8Array | undefined {
    return this.#lasting.get(name);
  }

  #flush(): void {
    for (const [name, bytes] of this.#seen) this.#lasting.set(name, bytes);
    this.#images.push(new Map(this.#lasting));
    if (this.#images.length > 40) this.#images.splice(this.#chance.below(this.#images.length), 1);
  }

  /** A rename that was not flushed may have reached the disk all the same, or not. */
  cutPower(keeps: boolean = this.#chance.happens(0.5)): void {
    if (keeps) for (const [name, bytes] of this.#seen) this.#lasting.set(name, bytes);
    this.#become(this.#lasting);
    this.#temporary.clear();
  }

  #become(image: ReadonlyMap<string, Uint8Array>): void {
    const kept = new Map(image);
    for (const files of [this.#seen, this.#lasting]) {
      files.clear();
      for (const [name, bytes] of kept) files.set(name, bytes);
    }
  }

  wipe(): void {
    this.#become(new Map());
    this.#temporary.clear();
  }

  /** An image of some earlier moment; false when there is none. */
  turnBack(): boolean {
    if (this.#images.length === 0) return false;
    this.#become(this.#chance.pick(this.#images));
    return true;
  }

  put(name: string, bytes: Uint8Array): void {
    this.#become(new Map([[name, bytes]]));
  }

  /** One bit of a file turns; false when there is no file. */
  rot(): boolean {
    const [name, bytes] = [...this.#seen][0] ?? [];
    if (name === undefined || bytes === undefined) return false;
    const rotten = Uint8Array.from(bytes);
    const at = this.#chance.below(rotten.length);
    rotten[at] = (rotten[at] ?? 0) ^ (1 << this.#chance.below(8));
    this.#become(new Map([[name, rotten]]));
    return true;
  }
}
