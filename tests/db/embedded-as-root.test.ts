// SPDX-License-Identifier: Apache-2.0
// As root the server runs under an account of its own, which must be able to enter every directory above its data.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { startEmbedded } from "../../src/db/embedded.ts";
import { silentLog } from "../../src/std/log.ts";
import { cleanupOf } from "../kit/cleanup.ts";

test("a root below a directory that the server's account cannot enter is refused and names that directory", async (t) => {
  const closed = fs.mkdtempSync(path.join(os.tmpdir(), "embedded-"));
  cleanupOf(t).defer(() => fs.rmSync(closed, { recursive: true, force: true }));
  const start = startEmbedded({ root: path.join(closed, "root"), log: silentLog });
  await assert.rejects(start, (error: { code: string; message: string }) => {
    assert.equal(error.code, "root_unusable");
    assert.ok(error.message.includes(`cannot enter ${closed}:`));
    return true;
  });
});
