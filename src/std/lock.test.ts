// SPDX-License-Identifier: Apache-2.0
// One holder at a time, named to others; released with its descriptor.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { lockHolder, takeLock } from "./lock.ts";

test("a held lock is refused with its holder's words, and free again after the release", (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "lock-"));
  t.after(() => fs.rmSync(directory, { recursive: true }));
  const file = path.join(directory, "lock");
  assert.equal(lockHolder(file), undefined);
  const first = takeLock(file, "pid 1");
  assert.equal(first.kind, "taken");
  assert.deepEqual(takeLock(file, "pid 2"), { kind: "held", holder: "pid 1" });
  assert.equal(lockHolder(file), "pid 1");
  if (first.kind === "taken") first.release();
  assert.equal(lockHolder(file), undefined);
  assert.equal(takeLock(file, "pid 3").kind, "taken");
  assert.throws(() => takeLock(path.join(directory, "none", "lock"), "x"), { code: "root_unusable" });
});
