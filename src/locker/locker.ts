// SPDX-License-Identifier: Apache-2.0
// The only store that must never be stale: one record a tenant, a copy in every slot. A store is acknowledged when every slot
// holds it; a load adopts only on agreement (judge.ts). Stores that come together share one write. Rule: between two stores
// at no time are there more than two distinct envelopes on the disks.

import { assert } from "../std/assert.ts";
import { Failure } from "../std/errors.ts";
import type { Random } from "../std/random.ts";
import { type Envelope, NO_PARENT, RECORD_BYTES_MAX, sameBytes, sealEnvelope } from "./envelope.ts";
import { type Discard, judge, type Reading, type Verdict } from "./judge.ts";
import type { SlotDisk } from "./slot-disk.ts";

export { type Discard, type Reading } from "./judge.ts";
export { openSlot, readSlotFile, type SlotDisk } from "./slot-disk.ts";

export type LockerOptions = {
  readonly slots: readonly SlotDisk[];
  /** SHA-256 of the node's public key. */
  readonly fingerprint: Uint8Array;
  readonly random: Random;
};

export type Loaded =
  | { readonly kind: "empty" }
  | ({ readonly kind: "adopted"; readonly record: Uint8Array } & Version)
  | Discard;

/** Which envelope it is. */
type Version = { readonly lineage: Uint8Array; readonly sequence: bigint; readonly digest: Uint8Array };

/** Evidence, signed by this node itself, of what every slot of it once held. */
export type Evidence = Version & {
  /** It later told of another lineage: an operator's reset, or disks that were all blank. */
  readonly isSuperseded?: boolean;
};

/** From the record as it is now to the one that shall be stored; undefined: nothing to store. */
export type Change = (record: Uint8Array | undefined) => Uint8Array | undefined;

type Waiting = {
  readonly change: Change;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
};

export class Locker {
  readonly #options: LockerOptions;
  readonly #nonce: Uint8Array;
  readonly #tenants = new Map<string, Tenant>();

  constructor(options: LockerOptions) {
    // Without a slot every store would be acknowledged by nobody.
    assert(options.slots.length > 0, "a locker has a slot at least");
    this.#options = options;
    this.#nonce = options.random.bytes(32);
  }

  /** The tenant of this name; one object a name, because a tenant's lock is its queue. */
  tenant(name: string): Tenant {
    const known = this.#tenants.get(name);
    if (known !== undefined) return known;
    const tenant = new Tenant({ ...this.#options, name, nonce: this.#nonce });
    this.#tenants.set(name, tenant);
    return tenant;
  }
}

type TenantOptions = LockerOptions & { readonly name: string; readonly nonce: Uint8Array };

export class Tenant {
  readonly #options: TenantOptions;
  /** The last acknowledged one. */
  #current: Envelope | undefined;
  /** What every slot holds for good: the current one, or one that a later store brought everywhere before its own. */
  #last: Envelope | undefined;
  #isLoaded = false;
  /** The highest sequence that was tried in this life: one that failed half-way is never used again for something else. */
  #tried = 0n;
  #waiting: Waiting[] = [];
  #isWriting = false;
  /** What only some slots hold, after a write that failed half-way. The next store first brings it into all of them: else three
   * slots could hold three envelopes. Adopting it is safe: a store that was not acknowledged had no effects. */
  #torn: Envelope | undefined;
  #lineage: Uint8Array | undefined;

  constructor(options: TenantOptions) {
    this.#options = options;
  }

  /** Reads every slot, repairs those that lag, and returns what may be trusted. Once in a life, before any store. */
  async load(): Promise<Loaded> {
    const { slots, name, fingerprint } = this.#options;
    const readings: Reading[] = [];
    for (const slot of slots) readings.push(await slot.read(name));
    const verdict = judge(readings, fingerprint);
    if (verdict.kind === "discard") return loadedOf(verdict, slots);
    for (const slot of slots) await slot.removeTemporary(name).catch(() => {});
    this.#isLoaded = true;
    if (verdict.kind === "empty") return { kind: "empty" };
    const { envelope, repair } = verdict;
    this.#current = envelope;
    this.#lineage = envelope.lineage;
    this.#tried = envelope.sequence;
    this.#torn = envelope;
    // A slot that fails here makes every store fail until it can be written; what was read is good all the same.
    await (repair.length > 0 ? this.#mend() : this.#settle(envelope)).catch(() => {});
    return loadedOf(verdict, slots);
  }

  /** Of what every slot holds for good: what only some hold, or what is not flushed, may be gone in the next life. */
  get evidence(): Evidence | undefined {
    if (this.#last === undefined) return undefined;
    const { lineage, sequence, digest } = this.#last;
    return { lineage, sequence, digest };
  }

  /**
   * Resolves when every slot holds a record in which this change was made, computed from the live record under the tenant's
   * lock. Rejects when a slot failed: then the change has not happened, and the error names the slot and its errno.
   */
  store(change: Change): Promise<void> {
    if (!this.#isLoaded) return Promise.reject(new Error(`bug: a store into ${this.#options.name} before its load`));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change, resolve, reject });
      if (!this.#isWriting) void this.#drain();
    });
  }

  /** A new lineage with this record, whatever was there: an operator has decided. */
  async reset(record: Uint8Array): Promise<void> {
    const { random, name, slots, fingerprint, nonce } = this.#options;
    assert(!this.#isWriting, `${name} is not reset during a store`);
    // Until every slot has the new lineage, no store may mix the old one in.
    this.#isLoaded = false;
    const envelope = sealEnvelope({
      fingerprint,
      lineage: random.bytes(16),
      nonce,
      sequence: 1n,
      parent: NO_PARENT,
      record,
    });
    for (const slot of slots) await write(slot, name, envelope.bytes);
    this.#current = envelope;
    this.#last = envelope;
    this.#torn = undefined;
    this.#lineage = envelope.lineage;
    this.#tried = 1n;
    this.#isLoaded = true;
  }

  async #drain(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      // Stores of this same turn share the write.
      await Promise.resolve();
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#commit(batch);
    }
    this.#isWriting = false;
  }

  /** One write for all that wait: each change sees what those before it made. A change that throws leaves the others alone. */
  async #commit(batch: readonly Waiting[]): Promise<void> {
    let record = this.#current?.record;
    let isChanged = false;
    const made: Waiting[] = [];
    for (const waiting of batch) {
      try {
        const next = waiting.change(record);
        if (next !== undefined) {
          if (next.length > RECORD_BYTES_MAX)
            throw new Failure("record_full", `the record of ${this.#options.name} is full`);
          record = next;
          isChanged = true;
        }
        made.push(waiting);
      } catch (error) {
        waiting.reject(error);
      }
    }
    try {
      if (isChanged && record !== undefined) await this.#write(record);
      for (const { resolve } of made) resolve();
    } catch (error) {
      for (const { reject } of made) reject(error);
    }
  }

  async #write(record: Uint8Array): Promise<void> {
    const { slots, name, fingerprint, nonce, random } = this.#options;
    await this.#mend();
    this.#lineage ??= random.bytes(16);
    this.#tried += 1n;
    const envelope = sealEnvelope({
      fingerprint,
      lineage: this.#lineage,
      nonce,
      sequence: this.#tried,
      parent: this.#last?.digest ?? NO_PARENT,
      record,
    });
    this.#torn = envelope;
    for (const slot of slots) await write(slot, name, envelope.bytes);
    this.#torn = undefined;
    this.#last = envelope;
    this.#current = envelope;
  }

  /** All slots hold it already; the life that put it there may have ended before its rename was flushed. */
  async #settle(envelope: Envelope): Promise<void> {
    for (const slot of this.#options.slots) await slot.flushDirectory();
    this.#torn = undefined;
    this.#last = envelope;
  }

  /** The very bytes, into every slot. */
  async #mend(): Promise<void> {
    const envelope = this.#torn;
    if (envelope === undefined) return;
    const { slots, name } = this.#options;
    for (const slot of slots) await write(slot, name, envelope.bytes);
    this.#torn = undefined;
    this.#last = envelope;
  }
}

/** Temporary file, flush, rename, flush of the directory: after a crash the slot has the old envelope or the new one, whole. */
async function write(slot: SlotDisk, name: string, bytes: Uint8Array): Promise<void> {
  try {
    await slot.writeTemporary(name, bytes);
    await slot.rename(name);
    await slot.flushDirectory();
  } catch (error) {
    throw storeFailure(slot, name, error);
  }
}

function storeFailure(slot: SlotDisk, name: string, error: unknown): Failure {
  const errno = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  const advice =
    errno === "ENOENT"
      ? `is its disk mounted? Mount it, or for a new disk mkdir -m 700 ${slot.place}, and start the agent again`
      : "check this disk";
  return new Failure("store_failed", `${slot.place}/${name} could not be written (${errno}): ${advice}`, {
    cause: error,
  });
}

/** What a verdict lets be used. */
export function loadedOf(verdict: Verdict, slots: readonly { readonly place: string }[]): Loaded {
  if (verdict.kind === "empty") return verdict;
  if (verdict.kind === "discard") return { ...verdict, text: named(verdict.text, slots) };
  const { record, lineage, sequence, digest } = verdict.envelope;
  return { kind: "adopted", record, lineage, sequence, digest };
}

/** "slot 0" becomes its directory. */
function named(text: string, slots: readonly { readonly place: string }[]): string {
  return text.replace(/slot (\d+)/g, (whole, index: string) => slots[Number(index)]?.place ?? whole);
}

/** All disks went back in time together: this node itself once said more, or something else of the same sequence, or another
 * lineage after this one. An empty record is no rollback. */
export function isRolledBack(loaded: Loaded, evidence: readonly Evidence[]): boolean {
  if (loaded.kind !== "adopted") return false;
  return evidence.some(
    ({ lineage, sequence, digest, isSuperseded = false }) =>
      sameBytes(lineage, loaded.lineage) &&
      (isSuperseded ||
        sequence > loaded.sequence ||
        (sequence === loaded.sequence && !sameBytes(digest, loaded.digest))),
  );
}
