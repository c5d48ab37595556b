// SPDX-License-Identifier: Apache-2.0
// What can be wrong with a backup: each is one clear line with an exit code, and no database is made of it.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { type Manifest, manifestText, readManifest } from "../../src/db/backup-format.ts";
import { assertRefused, backedUp } from "../kit/backed-up.ts";
import { migrations } from "../kit/database.ts";

type Change = (directory: string) => void;

const edit =
  (file: string, change: (bytes: Buffer) => Buffer): Change =>
  (directory) =>
    fs.writeFileSync(path.join(directory, file), change(fs.readFileSync(path.join(directory, file))));

const inManifest = (change: (manifest: Manifest) => object): Change =>
  edit("backup.json", (bytes) => {
    const { sha256: _, ...manifest } = JSON.parse(bytes.toString()) as Manifest & { sha256: string };
    return Buffer.from(manifestText(change(manifest) as Manifest));
  });

/** A backup that lies and knows how to sum: other rows, with the right checksum and count. */
const otherRows =
  (table: string, change: (text: string) => string): Change =>
  (directory) => {
    const file = `${table}.copy.gz`;
    const text = change(gunzipSync(fs.readFileSync(path.join(directory, file))).toString());
    const packed = gzipSync(text);
    fs.writeFileSync(path.join(directory, file), packed);
    const sha256 = createHash("sha256").update(packed).digest("hex");
    const row = { bytes: packed.length, sha256, rows: text.split("\n").length - 1 };
    inManifest((manifest) => ({
      ...manifest,
      tables: manifest.tables.map((one) => (one.name === table ? { ...one, ...row } : one)),
    }))(directory);
  };

const newest = migrations.at(-1);
const faults: readonly (readonly [string, Change, number, RegExp])[] = [
  [
    "one bit of a file flipped",
    edit("job.copy.gz", (bytes) => bytes.with(bytes.length - 12, (bytes.at(-12) ?? 0) ^ 1) as Buffer),
    102,
    /job\.copy\.gz/,
  ],
  ["a file cut off", edit("job_event.copy.gz", (bytes) => bytes.subarray(0, -20)), 102, /job_event\.copy\.gz/],
  ["a file that is missing", (directory) => fs.rmSync(path.join(directory, "lane.copy.gz")), 102, /lane.* is missing/],
  [
    "another file in its place",
    (directory) => fs.copyFileSync(path.join(directory, "lane.copy.gz"), path.join(directory, "node.copy.gz")),
    102,
    /node\.copy\.gz has \d+ bytes, and \d+ were written/,
  ],
  [
    "a manifest that somebody edited",
    edit("backup.json", (bytes) => Buffer.from(bytes.toString().replace('"rows": 1,', '"rows": 2,'))),
    102,
    /its checksum differs/,
  ],
  ["a manifest cut off", edit("backup.json", (bytes) => bytes.subarray(0, -30)), 102, /is not JSON/],
  ["no manifest", (directory) => fs.rmSync(path.join(directory, "backup.json")), 101, /is not a whole backup/],
  [
    "fewer rows than the manifest says",
    inManifest((manifest) => ({
      ...manifest,
      tables: manifest.tables.map((one) => ({ ...one, rows: one.rows + Number(one.name === "audit") })),
    })),
    102,
    /audit\.copy\.gz has \d+ rows, and \d+ were written/,
  ],
  [
    "a newer format",
    edit("backup.json", () => Buffer.from('{"format": 2, "holdfast": "9.0.0", "volumes": []}')),
    103,
    /by Holdfast 9\.0\.0 in format 2, .*: update this Holdfast/,
  ],
  [
    "a newer schema",
    inManifest((manifest) => ({
      ...manifest,
      migrations: [...manifest.migrations, { number: 99, name: "0099_later.sql", sha256: "0".repeat(64) }],
    })),
    103,
    /0099_later\.sql, which this program does not know: update this Holdfast/,
  ],
  [
    "a migration of another build",
    inManifest((manifest) => ({
      ...manifest,
      migrations: manifest.migrations.map((one) => (one.name === newest?.name ? { ...one, sha256: "0" } : one)),
    })),
    93,
    /restore it with the Holdfast 0\.\d+\.\d+ that wrote it/,
  ],
  [
    "a table that no migration makes",
    inManifest((manifest) => ({
      ...manifest,
      tables: manifest.tables.map((one) => (one.name === "sweep" ? { ...one, name: "swept" } : one)),
    })),
    102,
    /not those that its migrations make: .*swept/,
  ],
  ["rows that refer to nothing", otherRows("lane", () => ""), 102, /2 rows of app\.job refer to rows of app\.lane/],
  [
    "a row that breaks a check",
    otherRows("job", (text) => text.replace("succeeded", "achieved")),
    102,
    /job\.copy\.gz does not fit into app\.job: .*check constraint/,
  ],
];

test("whatever is wrong with a backup is found before a database is there, and said with its file", async (t) => {
  const { home, directory } = await backedUp(t);
  for (const [name, change, code, message] of faults) {
    const copy = path.join(home.directory, "copy");
    fs.cpSync(directory, copy, { recursive: true });
    change(copy);
    await assertRefused(home, { name, args: ["restore", copy], code, message });
    fs.rmSync(copy, { recursive: true });
    assert.ok(!fs.existsSync(path.join(home.root, "database")), name);
    const left = fs.existsSync(home.root) ? fs.readdirSync(home.root) : [];
    assert.deepEqual(
      left.filter((file) => file.startsWith("restoring")),
      [],
      name,
    );
  }
  assert.equal(readManifest(directory).format, 1);
});
