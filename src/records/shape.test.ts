// SPDX-License-Identifier: Apache-2.0
// Shapes: every bound holds in both directions, a fault names its place, and what a codec wrote it can read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cbor, CborFault, encodeCbor } from "./cbor.ts";
import { blob, bytes, codecOf, count, flag, list, nullable, oneOf, struct, text, u64 } from "./shape.ts";

const shape = struct({
  name: text(3),
  word: oneOf(["yes", "no"]),
  key: bytes(2),
  rest: blob(3),
  number: count(9),
  long: u64,
  isOn: flag,
  maybe: nullable(count()),
  items: list(text(1), 2),
});
const right = {
  name: "abc",
  word: "yes",
  key: Uint8Array.of(1, 2),
  rest: Uint8Array.of(),
  number: 9,
  long: 2n ** 64n - 1n,
  isOn: false,
  maybe: null,
  items: ["a", "b"],
} as const;
const codec = codecOf(shape, 200);

test("what fits comes back, small and large u64 alike", () => {
  assert.deepEqual(codec.decode(codec.encode(right)), right);
  assert.deepEqual(codec.decode(codec.encode({ ...right, long: 5n, maybe: 7 })), { ...right, long: 5n, maybe: 7 });
});

test("each bound is refused when it is read, with its place, and when it is written", () => {
  const wrong: readonly (readonly [string, Partial<Record<keyof typeof right, unknown>>])[] = [
    ["/name", { name: "abcd" }],
    ["/name", { name: 1 }],
    ["/word", { word: "maybe" }],
    ["/key", { key: Uint8Array.of(1) }],
    ["/rest", { rest: Uint8Array.of(1, 2, 3, 4) }],
    ["/number", { number: 10 }],
    ["/number", { number: -1 }],
    ["/long", { long: -1n }],
    ["/isOn", { isOn: 0 }],
    ["/maybe", { maybe: "" }],
    ["/items", { items: ["a", "b", "c"] }],
    ["/items/1", { items: ["a", "bb"] }],
    ["/items", { items: "a" }],
  ];
  for (const [place, change] of wrong) {
    const fault = (error: unknown): boolean => error instanceof CborFault && error.message.startsWith(`${place} `);
    const body = { ...right, ...change };
    assert.throws(() => codec.decode(encodeCbor(body as Cbor)), fault, place);
    if (change.items !== "a") assert.throws(() => codec.encode(body as typeof right), fault, place);
  }
});

test("a lone surrogate, which would come back as another text, is not written", () => {
  assert.throws(() => codec.encode({ ...right, name: "\uD800" }), CborFault);
});

test("a field too many, too few, and what is no map are refused with their place", () => {
  const { name: _, ...short } = right;
  for (const [place, body] of [
    ["/name", short],
    ["/other", { ...right, other: 1 }],
    ["it", [1]],
    ["it", Uint8Array.of(1)],
    ["it", null],
  ] as const) {
    const fault = (error: unknown): boolean => error instanceof CborFault && error.message.startsWith(`${place} `);
    assert.throws(() => codec.decode(encodeCbor(body)), fault, place);
  }
});

test("a body that takes more than its bytes is refused by its own code before it is written", () => {
  const small = codecOf(text(1000), 100);
  assert.throws(() => small.encode("x".repeat(200)), { code: "record_full" });
});

test("the description says every bound, with its fields in one order", () => {
  assert.equal(
    codec.description,
    "{isOn: flag, items: list(text(1), 2), key: bytes(2), long: u64, maybe: nullable(count(9007199254740991)), " +
      "name: text(3), number: count(9), rest: blob(3), word: oneOf(yes|no)}",
  );
});
