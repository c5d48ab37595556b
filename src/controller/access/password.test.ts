// SPDX-License-Identifier: Apache-2.0
// Passwords: what is stored proves a password without holding it, and is argon2id as others compute it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { systemRandom } from "../../std/random.ts";
import { hashPassword, verifyPassword } from "./password.ts";

test("a password verifies against its own hash only, and the same one is never stored the same way twice", async () => {
  const one = await hashPassword("correct horse", systemRandom);
  const two = await hashPassword("correct horse", systemRandom);
  assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  assert.notEqual(one, two);
  assert.equal(await verifyPassword("correct horse", one), true);
  assert.equal(await verifyPassword("correct horsf", one), false);
  assert.equal(await verifyPassword("", undefined), false);
});

test("reads what another argon2id wrote, with its own parameters, however the character was typed", async () => {
  // Made with: printf 'pässword' | argon2 somesaltsomesalt -id -t 3 -m 12 -p 1 -l 32 -e
  const made = "$argon2id$v=19$m=4096,t=3,p=1$c29tZXNhbHRzb21lc2FsdA$r9qhf5JNQbycXNbFGcMwpydctelnyTE1el0suoevyqE";
  assert.equal(await verifyPassword("p\u00e4ssword", made), true);
  assert.equal(await verifyPassword("pa\u0308ssword", made), true);
});

test("many tries at once are answered one after the other, all of them", async () => {
  const stored = await hashPassword("correct horse", systemRandom);
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) => verifyPassword(index % 2 === 0 ? "correct horse" : "no", stored)),
  );
  assert.deepEqual(
    answers,
    Array.from({ length: 12 }, (_, index) => index % 2 === 0),
  );
});
