// SPDX-License-Identifier: Apache-2.0
// The bytes of a sample model. That the real engine reads them is tests/sample.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { codeOf } from "../std/errors.ts";
import { ggufOf, writeSampleModel } from "./gguf.ts";

const MIB = 2 ** 20;

test("the same model is the same bytes, another name is another file", () => {
  const { head, sizeBytes } = ggufOf({ name: "red" });
  assert.equal(head.subarray(0, 8).toString("latin1"), "GGUF\u0003\0\0\0");
  assert.deepEqual(ggufOf({ name: "red" }), { head, sizeBytes });
  assert.notDeepEqual(ggufOf({ name: "blu" }).head, head);
  assert.ok(sizeBytes > MIB && sizeBytes < 2 * MIB);
  assert.throws(() => ggufOf({ name: "two words" }), /bug/);
});

test("padding adds at least as much, and at most 15 MiB more", () => {
  const plain = ggufOf({ name: "red" }).sizeBytes;
  for (const padBytes of [1, 100 * MIB, 4096 * MIB]) {
    const more = ggufOf({ name: "red", padBytes }).sizeBytes - plain;
    assert.ok(more >= padBytes && more <= padBytes + 15 * MIB, `${more} for ${padBytes}`);
  }
});

test("a padded file takes no space for its zeros, replaces what was there, and leaves nothing beside it", (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "gguf-"));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  const file = path.join(directory, "big.gguf");
  fs.writeFileSync(file, "old");
  const sizeBytes = writeSampleModel(file, { name: "big", padBytes: 1024 * MIB });
  const { size, blocks } = fs.statSync(file);
  assert.equal(size, sizeBytes);
  assert.ok(blocks * 512 < 4 * MIB);
  assert.deepEqual(fs.readdirSync(directory), ["big.gguf"]);
});

test("a place that cannot be written is said to be one", () => {
  assert.throws(
    () => writeSampleModel("/proc/nowhere/red.gguf", { name: "red" }),
    (error) => codeOf(error) === "root_unusable",
  );
});
