// SPDX-License-Identifier: Apache-2.0
// What the slots of a tenant say together, pure. Rule: stale data is never adopted; what cannot be told apart from stale is
// discarded, with the words that an operator needs. The verdict does not depend on the order of the slots.

import { type Envelope, openEnvelope, sameBytes } from "./envelope.ts";

/** What was read from one slot. */
export type Reading =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "missing" }
  /** errno: EIO and its like. */
  | { readonly kind: "unreadable"; readonly errno: string };

export type Discard = {
  readonly kind: "discard";
  readonly why: "corrupt" | "foreign" | "io" | "disagree";
  /** The slots that it is about, by their index. */
  readonly slots: readonly number[];
  readonly text: string;
};

export type Verdict =
  | { readonly kind: "empty" }
  /** repair: the slots that lag, which get the winner's very bytes before any store is taken. */
  | { readonly kind: "adopt"; readonly envelope: Envelope; readonly repair: readonly number[] }
  | Discard;

type Found = { readonly slot: number; readonly envelope: Envelope };

/** fingerprint: of this node. */
export function judge(readings: readonly Reading[], fingerprint: Uint8Array): Verdict {
  const found: Found[] = [];
  const missing: number[] = [];
  for (const [slot, reading] of readings.entries()) {
    if (reading.kind === "missing") missing.push(slot);
    else {
      const opened = readSlot(reading, slot, fingerprint);
      if (opened.kind === "discard") return worst(readings, fingerprint);
      found.push({ slot, envelope: opened.envelope });
    }
  }
  const distinct = found.filter(
    ({ envelope }, index) => found.findIndex((other) => sameBytes(other.envelope.bytes, envelope.bytes)) === index,
  );
  const [first, second, third] = distinct;
  if (first === undefined) return { kind: "empty" };
  const winner =
    second === undefined ? first.envelope : third === undefined ? winnerOf(first.envelope, second.envelope) : undefined;
  if (winner === undefined) return disagree(found);
  const lagging = found.filter(({ envelope }) => !sameBytes(envelope.bytes, winner.bytes)).map(({ slot }) => slot);
  return { kind: "adopt", envelope: winner, repair: [...missing, ...lagging].sort((a, b) => a - b) };
}

function readSlot(
  reading: Exclude<Reading, { kind: "missing" }>,
  slot: number,
  fingerprint: Uint8Array,
): { readonly kind: "found"; readonly envelope: Envelope } | Discard {
  const discard = (why: Discard["why"], text: string): Discard => ({ kind: "discard", why, slots: [slot], text });
  if (reading.kind === "unreadable") return discard("io", `cannot be read (${reading.errno}): the disk may be failing`);
  const opened = openEnvelope(reading.bytes);
  if (opened.kind === "corrupt") return discard("corrupt", `is damaged: ${opened.why}; the disk may be failing`);
  if (!sameBytes(opened.envelope.fingerprint, fingerprint))
    return discard("foreign", "belongs to another node: a disk from another machine, or a copied image");
  return { kind: "found", envelope: opened.envelope };
}

/** All damaged slots at once, the gravest reason first: a person should look at each disk once. */
function worst(readings: readonly Reading[], fingerprint: Uint8Array): Discard {
  const faults = readings.flatMap((reading, slot) => {
    const read = reading.kind === "missing" ? undefined : readSlot(reading, slot, fingerprint);
    return read?.kind === "discard" ? [read] : [];
  });
  const ranks = ["io", "corrupt", "foreign"];
  const [first, ...rest] = faults.toSorted((a, b) => ranks.indexOf(a.why) - ranks.indexOf(b.why));
  if (first === undefined) throw new Error("bug: no slot is damaged");
  return {
    kind: "discard",
    why: first.why,
    slots: faults.flatMap(({ slots }) => slots),
    text: [first, ...rest].map(({ slots, text }) => `slot ${slots.join()} ${text}`).join("; "),
  };
}

function disagree(found: readonly Found[]): Discard {
  const said = found.map(({ slot, envelope }) => `slot ${slot} has sequence ${envelope.sequence}`);
  return {
    kind: "discard",
    why: "disagree",
    slots: found.map(({ slot }) => slot),
    text: `the slots disagree (${said.join(", ")}): one disk may be an old copy, and nothing here tells which`,
  };
}

/** Undefined when neither may win. */
function winnerOf(one: Envelope, other: Envelope): Envelope | undefined {
  if (!sameBytes(one.lineage, other.lineage)) return undefined;
  const isChild = (child: Envelope, parent: Envelope): boolean => sameBytes(child.parent, parent.digest);
  if (sameBytes(one.record, other.record)) {
    // The same content: whichever is adopted, nothing is lost. Repair goes to the higher sequence.
    if (one.sequence !== other.sequence) return one.sequence > other.sequence ? one : other;
    if (isChild(one, other)) return one;
    if (isChild(other, one)) return other;
    return Buffer.compare(one.digest, other.digest) > 0 ? one : other;
  }
  if (sameBytes(one.nonce, other.nonce)) {
    // Torn by one life: a store that never acked had no effects, so the newer may be adopted.
    if (one.sequence === other.sequence) return undefined;
    return one.sequence > other.sequence ? one : other;
  }
  // Torn first write of a new life; sequences are never compared across lives.
  if (isChild(one, other)) return one;
  if (isChild(other, one)) return other;
  return undefined;
}
