// SPDX-License-Identifier: Apache-2.0
// Canonical text is equal for equal values; what cannot be stored is named by its place.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalJson, parseJson, storableText, unstorable } from "./json.ts";

test("equal values have equal canonical text, whatever the order of their keys", () => {
  assert.equal(
    canonicalJson({ b: [1, { d: null, c: "x" }], a: true }),
    canonicalJson({ a: true, b: [1, { c: "x", d: null }] }),
  );
  assert.equal(canonicalJson({ a: undefined, b: 1 }), '{"b":1}');
  assert.notEqual(canonicalJson({ a: "1" }), canonicalJson({ a: 1 }));
});

test("NUL, a lone surrogate, a rounded number, an infinite one and a deep nest are each named by their place", () => {
  assert.deepEqual(
    unstorable({ a: ["ok", "n\0l"] }, "").map((fault) => fault.place),
    ["/a/1"],
  );
  assert.match(unstorable({ "k/y": "\ud800" }, "/input")[0]?.place ?? "", /^\/input\/k~1y$/);
  assert.match(unstorable({ "\udc00": 1 }, "")[0]?.problem ?? "", /surrogate/);
  assert.match(unstorable([1n], "")[0]?.problem ?? "", /more digits/);
  assert.match(unstorable(Number.POSITIVE_INFINITY, "/x")[0]?.problem ?? "", /too large/);
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level++) deep = [deep];
  assert.match(unstorable(deep, "")[0]?.problem ?? "", /deeper than/);
  assert.deepEqual(unstorable({ emoji: "👍🏽", n: 1.5 }, ""), []);
});

test("a number that would lose digits is never rounded: it is named by its place", () => {
  const parsed = parseJson('{"id":1970670598291982290,"n":[1,2.5,-9007199254740991]}');
  assert.deepEqual(
    unstorable(parsed, "").map((fault) => fault.place),
    ["/id"],
  );
  assert.deepEqual(parseJson("[1e20, 0.1]"), [1e20, 0.1]);
});

test("text of a process becomes storable and stays recognisable", () => {
  assert.equal(storableText("a\0b\ud800"), "a\\u0000b\ufffd");
});
