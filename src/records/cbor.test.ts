// SPDX-License-Identifier: Apache-2.0
// One value has one text: every value comes back from its own bytes, and every other spelling of it is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Cbor, CBOR_DEPTH_MAX, CborFault, decodeCbor, encodeCbor } from "./cbor.ts";

const BYTES_MAX = 1_000_000;
const RUNS = { numRuns: 500 };

/** A decoder of text takes a leading byte order mark away: those are refused in both directions. */
const word = fc.string({ unit: "binary", maxLength: 12 }).filter((text) => text.isWellFormed() && text[0] !== "\uFEFF");
const leaf = fc.oneof(
  word,
  fc.constant(null),
  fc.boolean(),
  fc.maxSafeInteger().filter((number) => !Object.is(number, -0)),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }),
  fc.bigInt({ min: -(2n ** 64n), max: -(2n ** 53n) }),
  fc.uint8Array({ maxLength: 40 }),
);
const value = fc.letrec<{ value: Cbor }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 5 }),
    fc.dictionary(word, tie("value"), { maxKeys: 5 }).map((map): Cbor => ({ ...map })),
  ),
})).value;

const hex = (text: string): Uint8Array => Buffer.from(text.replaceAll(" ", ""), "hex");

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

function assertRefused(bytes: Uint8Array, why: string): void {
  assert.throws(() => decodeCbor(bytes, BYTES_MAX), CborFault, why);
}

test("every value comes back from its own bytes, and its bytes do not depend on the order of keys", () => {
  fc.assert(
    fc.property(value, (given) => {
      const bytes = encodeCbor(given);
      const back = decodeCbor(bytes, BYTES_MAX);
      assert.ok(sameBytes(encodeCbor(back), bytes));
      assert.deepEqual(back, given);
      if (typeof given === "object" && given !== null && !Array.isArray(given) && !(given instanceof Uint8Array)) {
        const turned = Object.fromEntries(Object.entries(given).toReversed()) as Cbor;
        assert.ok(sameBytes(encodeCbor(turned), bytes));
      }
    }),
    RUNS,
  );
});

test("a byte more, a byte less or any other bytes that decode give themselves back or are refused", () => {
  fc.assert(
    fc.property(value, fc.nat(), fc.integer({ min: 1, max: 255 }), (given, place, change) => {
      const bytes = encodeCbor(given);
      assertRefused(Uint8Array.of(...bytes, change), "a trailing byte");
      assertRefused(bytes.slice(0, -1), "cut");
      const changed = Uint8Array.from(bytes);
      const at = place % bytes.length;
      changed[at] = (changed[at] ?? 0) ^ change;
      let back: Cbor;
      try {
        back = decodeCbor(changed, BYTES_MAX);
      } catch (error) {
        assert.ok(error instanceof CborFault, String(error));
        return;
      }
      assert.ok(sameBytes(encodeCbor(back), changed), "another value, in its own one form");
    }),
    RUNS,
  );
});

/** Each head one size longer than it must be: the same value in other bytes. */
function longerHeads(bytes: Uint8Array): readonly Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at] ?? 0;
    const [major, info] = [first >> 5, first & 31];
    const size = info < 24 ? 0 : 1 << (info - 24);
    const argument =
      size === 0 ? BigInt(info) : BigInt(`0x${Buffer.from(bytes.slice(at + 1, at + 1 + size)).toString("hex")}`);
    if (major < 6 && size < 8) {
      const longer = size === 0 ? 1 : size * 2;
      const head = [(major << 5) | (24 + Math.log2(longer)), ...hex(argument.toString(16).padStart(longer * 2, "0"))];
      found.push(Uint8Array.of(...bytes.slice(0, at), ...head, ...bytes.slice(at + 1 + size)));
    }
    at += 1 + size + (major === 2 || major === 3 ? Number(argument) : 0);
  }
  return found;
}

test("a head that is longer than it must be is refused, at every place", () => {
  fc.assert(
    fc.property(value, (given) => {
      for (const bytes of longerHeads(encodeCbor(given))) assertRefused(bytes, Buffer.from(bytes).toString("hex"));
    }),
    { numRuns: 200 },
  );
});

test("refuses floats, tags, undefined, simple values, indefinite lengths, disorder, duplicates and bad UTF-8", () => {
  for (const [text, why] of [
    ["", "nothing"],
    ["f9 3c00", "1.0 as a half"],
    ["fa 3f800000", "1.0 as a single"],
    ["fb 3ff0000000000000", "1.0 as a double"],
    ["c0 00", "a tag"],
    ["d9 d9f7 00", "the tag that describes CBOR itself"],
    ["c2 41 05", "a big number as a tag"],
    ["f7", "undefined"],
    ["f0", "a simple value"],
    ["f8 14", "false in two bytes"],
    ["9f 00 ff", "an indefinite list"],
    ["bf 61 61 00 ff", "an indefinite map"],
    ["5f 41 00 ff", "indefinite bytes"],
    ["7f 61 61 ff", "indefinite text"],
    ["ff", "a break"],
    ["1c", "a reserved head"],
    ["a2 61 61 00 61 61 01", "a key twice"],
    ["a2 61 62 00 61 61 01", "keys in disorder"],
    ["a2 62 61 61 00 61 62 01", "a longer key first"],
    ["a1 00 00", "a number as a key"],
    ["a1 41 61 00", "bytes as a key"],
    ["61 ff", "bad UTF-8"],
    ["62 c0 80", "an overlong form"],
    ["63 ed a0 80", "a surrogate"],
    ["64 ef bb bf 78", "a byte order mark"],
    ["5b ffffffffffffffff", "longer than anything"],
    ["9b 0001000000000000", "a list of 2^48"],
    ["bb ffffffffffffffff", "a map of 2^64"],
  ] as const) {
    assertRefused(hex(text), why);
    assertRefused(hex(`81 ${text}`), `${why}, in a list`);
  }
});

test("a bomb of nested lists or maps is refused before anything is built, and what is just allowed is not", () => {
  const nested = (depth: number): Cbor => (depth === 0 ? 0 : [nested(depth - 1)]);
  assert.deepEqual(decodeCbor(encodeCbor(nested(CBOR_DEPTH_MAX)), BYTES_MAX), nested(CBOR_DEPTH_MAX));
  assert.throws(() => encodeCbor(nested(CBOR_DEPTH_MAX + 1)), CborFault);
  assertRefused(hex(`${"81".repeat(CBOR_DEPTH_MAX + 1)}00`), "one level too deep");
  for (const head of [0x81, 0x9b, 0xa1, 0xbf]) {
    const began = performance.now();
    assertRefused(new Uint8Array(900_000).fill(head), `bomb of ${head}`);
    assert.ok(performance.now() - began < 2_000);
  }
});

test("more bytes than allowed are refused unread", () => {
  assert.throws(() => decodeCbor(new Uint8Array(11), 10), /has 11 bytes, more than 10/);
});

test("what could not be read back is not written", () => {
  for (const given of [1.5, 2 ** 53, Number.NaN, Infinity, "\uFEFFtext", 2n ** 64n, [undefined], { key: undefined }])
    assert.throws(() => encodeCbor(given as Cbor), CborFault, String(given));
});
