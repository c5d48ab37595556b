// SPDX-License-Identifier: Apache-2.0
// The load table of the locker, for one, two and three slots in every order: which envelope is adopted, which slots are
// repaired, and when nothing may be trusted, with the slots named and what to check.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Envelope, type NewEnvelope, NO_PARENT, sealEnvelope } from "./envelope.ts";
import { judge, type Reading, type Verdict } from "./judge.ts";

const fill = (length: number, byte: number): Uint8Array => new Uint8Array(length).fill(byte);
const fingerprint = fill(32, 1);
const seal = (changes: Partial<NewEnvelope>): Envelope =>
  sealEnvelope({
    fingerprint,
    lineage: fill(16, 2),
    nonce: fill(32, 0xa),
    sequence: 5n,
    parent: NO_PARENT,
    record: Buffer.from("e"),
    ...changes,
  });
const otherLife = { nonce: fill(32, 0xb) };

const E = seal({});
const changed = (change: (bytes: Uint8Array) => void): Uint8Array => {
  const bytes = Uint8Array.from(E.bytes);
  change(bytes);
  return bytes;
};

const ENVELOPES = {
  E,
  /** Torn by the life that wrote E. */
  F: seal({ sequence: 6n, parent: E.digest, record: Buffer.from("f") }),
  /** The first write of the next life, over E. */
  C: seal({ ...otherLife, sequence: 6n, parent: E.digest, record: Buffer.from("c") }),
  /** Of another life, far ahead, and no child of any of them: sequences of two lives say nothing. */
  X: seal({ ...otherLife, sequence: 99n, parent: fill(32, 9), record: Buffer.from("x") }),
  /** The same life and sequence as E, another record: nobody writes that. */
  S: seal({ record: Buffer.from("s") }),
  /** The record of E, written again by another life, later. */
  R: seal({ ...otherLife, sequence: 7n, parent: fill(32, 9) }),
  /** The record of E with its sequence, over E, by another life: a tie that the parent decides. */
  T: seal({ ...otherLife, parent: E.digest }),
  /** The same after an operator's reset: another lineage. */
  L: seal({ ...otherLife, lineage: fill(16, 3), sequence: 1n, record: Buffer.from("l") }),
  /** The record of E in another lineage. */
  K: seal({ ...otherLife, lineage: fill(16, 3), sequence: 8n }),
} as const;

type Name = keyof typeof ENVELOPES;

const HARMED = {
  short: { kind: "bytes", bytes: E.bytes.slice(0, 100) },
  magic: { kind: "bytes", bytes: changed((bytes) => bytes.set([0], 3)) },
  digest: { kind: "bytes", bytes: changed((bytes) => bytes.set([0], bytes.length - 1)) },
  sequence: { kind: "bytes", bytes: changed((bytes) => bytes.set([7], 99)) },
  nothing: { kind: "bytes", bytes: new Uint8Array() },
  long: { kind: "bytes", bytes: Buffer.concat([E.bytes, new Uint8Array(256 * 1024)]) },
  foreign: { kind: "bytes", bytes: seal({ fingerprint: fill(32, 0xee) }).bytes },
  EIO: { kind: "unreadable", errno: "EIO" },
} as const satisfies { readonly [name: string]: Reading };

const REASON = { foreign: "foreign", EIO: "io" } as const;
const reasonOf = (name: keyof typeof HARMED) => (name === "foreign" || name === "EIO" ? REASON[name] : "corrupt");

/** Which of two different envelopes wins; a pair that is not here disagrees. */
const WINNER: { readonly [pair: string]: Name } = {
  "E F": "F", // torn by one life
  "C E": "C", // torn first write of a new life
  "F S": "F", // one life: the higher sequence
  "E R": "R", // equal records: the higher sequence
  "E T": "T", // equal records and sequences: the child
  "R T": "R", // equal records: the higher sequence
  "C X": "X", // one life
  "R X": "X", // one life
  "T X": "X", // one life
  "C R": "R", // one life
  "K L": "K", // one life
  "C T": "C", // one life
};

const readingOf = (name: string): Reading => {
  if (name === "missing") return { kind: "missing" };
  const harmed = HARMED[name as keyof typeof HARMED] as Reading | undefined;
  return harmed ?? { kind: "bytes", bytes: ENVELOPES[name as Name].bytes };
};

/** What the table of the specification says, without looking at an envelope. */
function expected(slots: readonly string[]): Omit<Extract<Verdict, { kind: "discard" }>, "text"> | string {
  const harmed = slots.flatMap((name, index) => (name in HARMED ? [{ name: name as keyof typeof HARMED, index }] : []));
  if (harmed.length > 0) {
    const reasons = harmed.map(({ name }) => reasonOf(name));
    const why = (["io", "corrupt", "foreign"] as const).find((reason) => reasons.includes(reason)) ?? "io";
    return { kind: "discard", why, slots: harmed.map(({ index }) => index) };
  }
  const names = [...new Set(slots.filter((name) => name !== "missing"))].sort();
  if (names.length === 0) return "empty";
  if (names.length === 1) return names[0] ?? "";
  const winner = names.length === 2 ? WINNER[names.join(" ")] : undefined;
  const found = slots.flatMap((name, index) => (name === "missing" ? [] : [index]));
  return winner ?? { kind: "discard", why: "disagree", slots: found };
}

function assertVerdict(slots: readonly string[]): void {
  const place = slots.join(", ");
  const verdict = judge(slots.map(readingOf), fingerprint);
  const wanted = expected(slots);
  if (wanted === "empty") return assert.deepEqual(verdict, { kind: "empty" }, place);
  if (typeof wanted === "string") {
    assert.ok(verdict.kind === "adopt", `${place}: ${JSON.stringify(verdict.kind)}`);
    assert.deepEqual(verdict.envelope.bytes, ENVELOPES[wanted as Name].bytes, `${place} → ${wanted}`);
    const lag = slots.flatMap((name, index) => (name === wanted ? [] : [index]));
    return assert.deepEqual(verdict.repair, lag, place);
  }
  assert.ok(verdict.kind === "discard", `${place}: ${verdict.kind}`);
  const { text, ...rest } = verdict;
  assert.deepEqual({ ...rest, slots: rest.slots.toSorted() }, wanted, place);
  for (const slot of wanted.slots) assert.ok(text.includes(`slot ${slot} `), `${place} names slot ${slot}: ${text}`);
  assert.match(text, wanted.why === "disagree" ? /one disk may be an old copy/ : /disk/, place);
}

const NAMES: readonly string[] = ["missing", ...Object.keys(ENVELOPES), ...Object.keys(HARMED)];

test("the whole load table, for one, two and three slots in every order", () => {
  let rows = 0;
  const visit = (slots: readonly string[], length: number): void => {
    if (slots.length === length) {
      rows++;
      return assertVerdict(slots);
    }
    for (const name of NAMES) visit([...slots, name], length);
  };
  for (const length of [1, 2, 3]) visit([], length);
  assert.equal(rows, 18 + 18 ** 2 + 18 ** 3);
});

test("each damage is told in the words that an operator needs", () => {
  const textOf = (reading: Reading): string => {
    const verdict = judge([reading], fingerprint);
    assert.ok(verdict.kind === "discard");
    return verdict.text;
  };
  assert.equal(textOf(HARMED.EIO), "slot 0 cannot be read (EIO): the disk may be failing");
  assert.match(
    textOf(HARMED.short),
    /^slot 0 is damaged: it has 100 bytes, fewer than an envelope; the disk may be failing$/,
  );
  assert.match(textOf(HARMED.magic), /does not begin as an envelope does/);
  assert.match(textOf(HARMED.digest), /its digest does not fit its content/);
  assert.match(textOf(HARMED.foreign), /belongs to another node: a disk from another machine, or a copied image/);
});

test("equal records, sequences and no parent: the greater digest wins, whichever slot it is in", () => {
  const tie = seal({ ...otherLife, parent: fill(32, 9) });
  const greater = Buffer.compare(E.digest, tie.digest) > 0 ? E : tie;
  for (const pair of [
    [E, tie],
    [tie, E],
  ]) {
    const verdict = judge(
      pair.map(({ bytes }) => ({ kind: "bytes", bytes })),
      fingerprint,
    );
    assert.ok(verdict.kind === "adopt");
    assert.deepEqual(verdict.envelope.digest, greater.digest);
  }
});

test("a bit that turns anywhere in an envelope is damage, never another record", () => {
  for (let at = 0; at < E.bytes.length * 8; at++) {
    const bytes = changed((copy) => copy.set([(copy[at >> 3] ?? 0) ^ (1 << (at & 7))], at >> 3));
    assert.equal(judge([{ kind: "bytes", bytes }], fingerprint).kind, "discard", `bit ${at}`);
  }
});
