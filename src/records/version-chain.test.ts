// SPDX-License-Identifier: Apache-2.0
// Chains of versions: each way to decode has its own word, the older version is written for as long as it is asked for, and a
// newer wire message is passed on byte by byte.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cbor, encodeCbor } from "./cbor.ts";
import { codecOf, count, struct, text } from "./shape.ts";
import { recordChain, wireChain } from "./version-chain.ts";

const first = codecOf(struct({ name: text(20) }), 100);
const second = codecOf(struct({ given: text(10), family: text(10) }), 100);
const third = codecOf(struct({ given: text(10), family: text(10), age: count(200) }), 100);

/** Versions 2, 5 and 6: 3 and 4 are in a gap, 1 is below. */
const people = recordChain(2, first)
  .next(5, second, {
    from: ({ name }) => {
      const [given = "", family] = name.split(" ");
      return family === undefined
        ? { kind: "failed", reason: `"${name}" has no family name` }
        : { kind: "converted", body: { given, family } };
    },
    back: ({ given, family }) => ({ name: `${given} ${family}` }),
  })
  .next(6, third, {
    from: (body) => ({ kind: "converted", body: { ...body, age: 0 } }),
    back: ({ given, family }) => ({ given, family }),
  });

const ada = { given: "Ada", family: "L", age: 0 };
const wrapped = (version: Cbor, body: Cbor): Uint8Array => encodeCbor([version, body]);

test("decodes each version it knows into the newest body, and writes nothing back", () => {
  for (const version of [2, 5, 6])
    assert.deepEqual(people.decode(people.encode(ada, version)), { kind: "ok", version, body: ada });
});

test("writes the newest version, or an older one for as long as an upgrade is not confirmed", () => {
  assert.deepEqual(people.encode(ada), people.encode(ada, 6));
  assert.deepEqual(people.encode({ ...ada, age: 36 }, 2), wrapped(2, first.encode({ name: "Ada L" })));
  const old = recordChain(2, first);
  assert.deepEqual(old.decode(people.encode(ada, 2)), { kind: "ok", version: 2, body: { name: "Ada L" } });
  assert.throws(() => people.encode(ada, 3), /bug: there is no version 3/);
});

test("a version above the newest is future, whatever its body is", () => {
  for (const version of [7, 8, Number.MAX_SAFE_INTEGER])
    assert.deepEqual(people.decode(wrapped(version, Uint8Array.of(0xff))), { kind: "future", version });
});

test("a version in a gap or below the first is unknown", () => {
  for (const version of [1, 3, 4])
    assert.deepEqual(people.decode(wrapped(version, first.encode({ name: "Ada L" }))), { kind: "unknown", version });
});

test("a body that is not what its version says is a fault of the body, and one that cannot be carried over of the conversion", () => {
  const body = people.decode(wrapped(6, first.encode({ name: "Ada L" })));
  assert.ok(
    body.kind === "body" && body.version === 6 && body.reason.startsWith("/name is not known"),
    JSON.stringify(body),
  );
  const convert = people.decode(wrapped(2, first.encode({ name: "Ada" })));
  assert.deepEqual(convert, { kind: "convert", version: 2, reason: '"Ada" has no family name' });
});

test("anything but exactly [version, bytes] is a fault of the envelope", () => {
  const body = first.encode({ name: "Ada L" });
  for (const bytes of [
    new Uint8Array(),
    encodeCbor([2]),
    encodeCbor([2, body, 0]),
    encodeCbor({ version: 2, body }),
    encodeCbor([0, body]),
    encodeCbor([-2, body]),
    encodeCbor([2n ** 60n, body]),
    encodeCbor(["2", body]),
    encodeCbor([2, "body"]),
    Uint8Array.of(...wrapped(2, body), 0),
    Uint8Array.of(0x82, 0x18, 0x02, ...encodeCbor(body)),
    new Uint8Array(2 * 1024 * 1024),
  ])
    assert.equal(people.decode(bytes).kind, "envelope", Buffer.from(bytes.slice(0, 20)).toString("hex"));
});

const wire = wireChain(1, first).next(2, second, {
  from: ({ name }) => ({ given: name.slice(0, 10), family: "" }),
  back: ({ given, family }) => ({ name: `${given}${family}` }),
});

test("a wire message of a newer version is kept byte by byte, to be passed on", () => {
  const newer = wrapped(3, Uint8Array.of(9, 9, 9));
  const decoded = wire.decode(newer);
  assert.ok(decoded.kind === "future");
  assert.deepEqual([decoded.version, decoded.bytes], [3, newer]);
});

test("a wire message of an older version is always carried over, and a broken one is a fault", () => {
  const old = wire.decode(wire.encode({ given: "Ada", family: "" }, 1));
  assert.deepEqual(old, { kind: "ok", version: 1, body: { given: "Ada", family: "" } });
  assert.equal(wire.decode(wrapped(2, first.encode({ name: "Ada" }))).kind, "body");
  assert.equal(wire.decode(Uint8Array.of(0)).kind, "envelope");
});

test("the description has a line for each version", () => {
  assert.equal(people.newest, 6);
  assert.equal(people.description, `2: ${first.description}\n5: ${second.description}\n6: ${third.description}`);
});
