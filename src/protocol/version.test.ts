// SPDX-License-Identifier: Apache-2.0
// Versions are compared part by part as numbers; what is none is not guessed at.

import assert from "node:assert/strict";
import { test } from "node:test";
import { compareVersions } from "./version.ts";

test("the older version is the smaller one, part by part as numbers", () => {
  const order = ["0.1.0", "0.1.9", "0.1.10", "0.2.0", "1.0.0"];
  for (const [index, version] of order.entries()) {
    for (const [other, later] of order.entries())
      assert.equal(Math.sign(compareVersions(version, later) ?? Number.NaN), Math.sign(index - other));
  }
  assert.equal(compareVersions("0.1.0-rc.1", "0.1.0"), 0);
});

test("what is no version is neither older nor newer", () => {
  for (const text of ["", "1", "1.2", "v1.2.3", "1.2.3.4", "unknown", "1.2.9999999999"])
    assert.equal(compareVersions(text, "0.1.0"), undefined, text);
});
