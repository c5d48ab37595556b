// SPDX-License-Identifier: Apache-2.0
// The burned filter: its layout is pinned, it never forgets, and it errs only by calling a network burned.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { BURNED_BYTES, emptyBurned, isBurned, withBurned } from "./burned.ts";

const bitsIn = (burned: Uint8Array): readonly number[] =>
  Array.from({ length: burned.length * 8 }, (_, bit) => bit).filter(
    (bit) => ((burned[bit >> 3] ?? 0) & (0x80 >> (bit & 7))) !== 0,
  );

test("the layout is pinned: seven bits from the 16-bit big-endian words of SHA3-256, most significant bit first", () => {
  // Checked with head -c 16 /dev/zero | openssl dgst -sha3-256.
  const network = new Uint8Array(16);
  const words = createHash("sha3-256").update(network).digest("hex").match(/..../g)?.slice(0, 7) ?? [];
  const wanted = words.map((word) => Number.parseInt(word, 16) % 8192).sort((a, b) => a - b);
  assert.deepEqual(bitsIn(withBurned(emptyBurned, network)), wanted);
  assert.deepEqual(wanted, [200, 358, 1686, 1830, 2186, 4354, 6399]);
});

test("what was burned stays burned, whatever else is, in any order", () => {
  const networks = fc.array(fc.uint8Array({ minLength: 16, maxLength: 16 }), { maxLength: 40 });
  fc.assert(
    fc.property(networks, (given) => {
      const all = given.reduce(withBurned, emptyBurned);
      assert.equal(all.length, BURNED_BYTES);
      for (const network of given) assert.ok(isBurned(all, network));
      assert.deepEqual(given.toReversed().reduce(withBurned, emptyBurned), all);
    }),
  );
  assert.deepEqual(emptyBurned, new Uint8Array(BURNED_BYTES), "nothing wrote into the shared empty one");
});

test("after 200 networks fewer than one of a thousand others is called burned", () => {
  const network = (number: number): Uint8Array => createHash("sha256").update(String(number)).digest().subarray(0, 16);
  let burned = emptyBurned;
  for (let number = 0; number < 200; number++) burned = withBurned(burned, network(number));
  let wrong = 0;
  for (let number = 1000; number < 21_000; number++) if (isBurned(burned, network(number))) wrong++;
  assert.ok(wrong < 20, `${wrong} of 20000`);
});
