// SPDX-License-Identifier: Apache-2.0
// The boundary of a node: what was started here is known, and is never started twice (promise P9). One durable store before
// each gate opens; every change is computed from the live record under its tenant's lock. What cannot be trusted refuses
// every job, across restarts, until an operator decides.

import { type Evidence, isRolledBack, type Loaded, type Tenant } from "../locker/locker.ts";
import { RECORD_BYTES_MAX, sameBytes } from "../locker/envelope.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import {
  admitAttempt,
  type Admitted,
  type AttemptRef,
  type AttemptStart,
  closeAttempt,
  endAttempt,
} from "./attempts.ts";
import { type BoundaryRecord, boundaryFormat, emptyRecord } from "./record.ts";

export { type AttemptRef } from "./attempts.ts";
export { adjudicate, type Adjudged, type Found } from "./adjudicate.ts";
export { type AttemptEntry, type BoundaryRecord, identityOfStored, storedIdentity } from "./record.ts";

export const BOUNDARY_TENANT = "boundary";

export type BoundaryState =
  | { readonly kind: "trusted" }
  /** Refuses every job until an operator resets it. */
  | { readonly kind: "untrusted"; readonly why: string }
  /** Written by a newer program: refuses every job until this one is updated; never reset for that. */
  | { readonly kind: "future"; readonly why: string }
  /** The last store failed: refuses every job until one succeeds. */
  | { readonly kind: "unwritable"; readonly why: string };

export type Started =
  | { readonly kind: "admitted" }
  | {
      readonly kind: "refused";
      readonly reason: Extract<Admitted, { kind: "refused" }>["reason"];
      readonly text: string;
    }
  /** The node, not the job, is at fault. */
  | { readonly kind: "unable"; readonly text: string };

/** What a tenant's load says about the record, pure. */
export function readBoundary(loaded: Loaded): { readonly record: BoundaryRecord; readonly state: BoundaryState } {
  const refuse = (kind: "untrusted" | "future", why: string) => ({ record: emptyRecord, state: { kind, why } });
  if (loaded.kind === "empty") return { record: emptyRecord, state: { kind: "trusted" } };
  if (loaded.kind === "discard") return refuse("untrusted", loaded.text);
  const decoded = boundaryFormat.decode(loaded.record);
  switch (decoded.kind) {
    case "ok":
      return { record: decoded.body, state: { kind: "trusted" } };
    case "future":
      return refuse(
        "future",
        `its record has version ${decoded.version}, written by a newer Holdfast: update this one`,
      );
    case "unknown":
      return refuse("untrusted", `its record has version ${decoded.version}, which no Holdfast wrote`);
    case "envelope":
    case "body":
    case "convert":
      return refuse("untrusted", `its record cannot be read: ${decoded.reason}`);
    default:
      return decoded satisfies never;
  }
}

export class Boundary {
  readonly #tenant: Tenant;
  readonly #loaded: Loaded;
  #state: BoundaryState;
  #record: BoundaryRecord;
  /** The bytes that were last stored, decoded. */
  #decoded: { readonly bytes: Uint8Array | undefined; readonly record: BoundaryRecord };
  /** Not taken into a record yet. */
  readonly #waiting: Waiting[] = [];

  private constructor(tenant: Tenant, loaded: Loaded) {
    this.#tenant = tenant;
    this.#loaded = loaded;
    const { record, state } = readBoundary(loaded);
    this.#record = record;
    this.#state = state;
    this.#decoded = { bytes: undefined, record: emptyRecord };
  }

  static async open(tenant: Tenant): Promise<Boundary> {
    return new Boundary(tenant, await tenant.load());
  }

  get state(): BoundaryState {
    return this.#state;
  }

  /** As last acknowledged. */
  get record(): BoundaryRecord {
    return this.#record;
  }

  /** What this node acknowledged last, to be signed into its heartbeats. */
  get evidence(): Evidence | undefined {
    return this.#tenant.evidence;
  }

  /** What this node itself once said to others: more than the slots know means that all of them went back in time together. */
  noteEvidence(evidence: readonly Evidence[]): void {
    const own = this.#tenant.evidence;
    // What this very life acknowledged comes back to it, too.
    const earlier = evidence.filter(
      ({ lineage, sequence, digest, isSuperseded = false }) =>
        own === undefined ||
        isSuperseded ||
        !sameBytes(lineage, own.lineage) ||
        sequence > own.sequence ||
        (sequence === own.sequence && !sameBytes(digest, own.digest)),
    );
    if (!this.#isRefusing() && isRolledBack(this.#loaded, earlier))
      this.#state = {
        kind: "untrusted",
        why: "the locker went back in time: this node once acknowledged more than its slots know (an old image, a restored disk, or one from before a reset?)",
      };
  }

  /** Before the gate opens: resolves admitted only when every slot holds the entry. Never throws. */
  async startAttempt(start: AttemptStart): Promise<Started> {
    const before = this.#refusal();
    if (before !== undefined) return before;
    let admitted: Admitted | undefined;
    try {
      await this.#change((record) => {
        admitted = admitAttempt(record, start);
        return admitted.kind === "admitted" ? admitted.record : record;
      });
    } catch (error) {
      if (codeOf(error) === "record_full") return { kind: "refused", reason: "full", text: messageOf(error) };
      return { kind: "unable", text: messageOf(error) };
    }
    // Evidence of a rollback may have come while the entry was written.
    const after = this.#refusal();
    if (after !== undefined) return after;
    if (admitted === undefined) throw new Error("bug: a change that was stored has not run");
    return admitted.kind === "admitted" ? { kind: "admitted" } : admitted;
  }

  /** Lazily: the exit file holds the ending already. */
  async endAttempt(ref: AttemptRef, outcome: string): Promise<void> {
    await this.#change((record) => endAttempt(record, ref, outcome)).catch(() => {});
  }

  /** The controller has acknowledged the ending. An entry that cannot be removed now is removed by a later start. */
  async closeAttempt(ref: AttemptRef): Promise<void> {
    await this.#change((record) => closeAttempt(record, ref)).catch(() => {});
  }

  /** Whether a store works again: a node that refused for a full disk finds out by itself. */
  async probe(): Promise<void> {
    if (this.#state.kind !== "unwritable") return;
    await this.#change((record) => ({ ...record })).catch(() => {});
  }

  /** Nothing but an operator or another program ends it. */
  #isRefusing(): boolean {
    return this.#state.kind === "untrusted" || this.#state.kind === "future";
  }

  #refusal(): Extract<Started, { kind: "unable" }> | undefined {
    const state = this.#state;
    return state.kind === "untrusted" || state.kind === "future"
      ? { kind: "unable", text: `this node refuses every job: ${state.why}` }
      : undefined;
  }

  /** Resolves when every slot holds a record in which the change was made. */
  #change(change: Change): Promise<void> {
    if (this.#state.kind === "untrusted" || this.#state.kind === "future")
      return Promise.reject(new Failure("boundary_untrusted", this.#state.why));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change, resolve, reject });
      if (this.#waiting.length === 1) void this.#storeWaiting();
    });
  }

  /** All that wait when the write before is done go into one record, which is encoded once: that is most of the work. */
  async #storeWaiting(): Promise<void> {
    let taken: readonly Waiting[] | undefined;
    let batch: Batch = { made: [], record: this.#record, bytes: undefined };
    try {
      await this.#tenant.store((bytes) => {
        taken = this.#waiting.splice(0);
        const live = bytes === this.#decoded.bytes ? this.#decoded.record : decode(bytes);
        batch = makeAll(live, taken);
        if (batch.bytes !== undefined) this.#decoded = { bytes: batch.bytes, record: batch.record };
        return batch.bytes;
      });
    } catch (error) {
      this.#decoded = { bytes: undefined, record: emptyRecord };
      if (codeOf(error) === "store_failed" && !this.#isRefusing())
        this.#state = { kind: "unwritable", why: messageOf(error) };
      for (const { reject } of taken ?? this.#waiting.splice(0)) reject(error);
      return;
    }
    this.#record = batch.record;
    if (batch.bytes !== undefined && this.#state.kind === "unwritable") this.#state = { kind: "trusted" };
    for (const { resolve } of batch.made) resolve();
  }
}

type Change = (record: BoundaryRecord) => BoundaryRecord;

type Waiting = {
  readonly change: Change;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
};

/** bytes: undefined when nothing changed. */
type Batch = {
  readonly made: readonly Waiting[];
  readonly record: BoundaryRecord;
  readonly bytes: Uint8Array | undefined;
};

/** Each change sees what those before it made. One that throws, or with which the record does not fit, leaves the others alone. */
function makeAll(live: BoundaryRecord, waiting: readonly Waiting[]): Batch {
  try {
    const record = waiting.reduce((before, { change }) => change(before), live);
    return { made: waiting, record, bytes: record === live ? undefined : encode(record) };
  } catch (error) {
    const [only, ...others] = waiting;
    if (others.length === 0) {
      only?.reject(error);
      return { made: [], record: live, bytes: undefined };
    }
    // By halves, to find those that cannot be made.
    const middle = waiting.length >> 1;
    const first = makeAll(live, waiting.slice(0, middle));
    const second = makeAll(first.record, waiting.slice(middle));
    return { made: [...first.made, ...second.made], record: second.record, bytes: second.bytes ?? first.bytes };
  }
}

function encode(record: BoundaryRecord): Uint8Array {
  const bytes = boundaryFormat.encode(record);
  if (bytes.length > RECORD_BYTES_MAX) throw new Failure("record_full", "what this node holds does not fit its record");
  return bytes;
}

function decode(bytes: Uint8Array | undefined): BoundaryRecord {
  if (bytes === undefined) return emptyRecord;
  const decoded = boundaryFormat.decode(bytes);
  if (decoded.kind !== "ok") throw new Error(`bug: the live record does not decode: ${decoded.kind}`);
  return decoded.body;
}

/** A new lineage with an empty record: an operator has accepted that jobs may repeat. */
export async function resetBoundary(tenant: Tenant): Promise<void> {
  await tenant.reset(boundaryFormat.encode(emptyRecord));
}
