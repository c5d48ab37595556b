// SPDX-License-Identifier: Apache-2.0
// Format 1 as it was shipped, written from a PostgreSQL 15 (tests/kit/golden-backup-main.ts): it restores into today's for ever.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { readManifest } from "../../src/db/backup-format.ts";
import { startEmbedded } from "../../src/db/embedded.ts";
import { silentLog } from "../../src/std/log.ts";
import { createHome } from "../kit/command.ts";
import { migrations } from "../kit/database.ts";
import { linesOf, tableLines } from "../kit/table-lines.ts";

const golden = fileURLToPath(new URL("../golden/backup-1", import.meta.url));

/** Tables of which a restore changes rows or adds some. */
const CHANGED = ["job", "job_event", "attempt", "pairing_code", "audit", "migration"];

test("a backup in format 1 from PostgreSQL 15 restores row by row, and the migrations since then are applied", async (t) => {
  const home = createHome(t);
  const manifest = readManifest(golden);
  assert.match(manifest.server, /^15\./);
  const { code, stdout, stderr } = await home.run(["restore", golden, "--json"]);
  assert.equal(code, 0, stderr);
  const { migrated, returned } = JSON.parse(stdout) as { migrated: readonly string[]; returned: number };
  assert.deepEqual([manifest.migrations.length + migrated.length, returned], [migrations.length, 1]);
  await using server = await startEmbedded({ root: home.root, log: silentLog, durable: false });
  assert.match(server.serverVersion, /^18\./);
  const restored = await tableLines(server.owner, manifest.tables);
  for (const { name, file, rows } of manifest.tables) {
    const written = linesOf(gunzipSync(fs.readFileSync(path.join(golden, file))).toString());
    assert.ok(written.length === rows && rows > 0, `${name} has rows`);
    if (!CHANGED.includes(name)) assert.deepEqual(restored[name], written, name);
    const lost = written.filter((line) => !restored[name]?.includes(line));
    // What changed: the job that ran, its attempt, and the code that was not used.
    const wanted = ["job", "attempt", "pairing_code"].includes(name) ? 1 : 0;
    assert.equal(lost.length, wanted, `${name}: ${lost.join("\n")}`);
  }
});
