// SPDX-License-Identifier: Apache-2.0
// What can be wrong with a backup, its place or the root: each is one clear line with an exit code, and nothing is made.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { createHash } from "node:crypto";
import pg from "pg";
import type { BackupSummary } from "../../src/cli/programs.ts";
import { type Manifest, manifestText, readManifest } from "../../src/db/backup-format.ts";
import { startEmbedded } from "../../src/db/embedded.ts";
import type { ConnectionOptions } from "../../src/db/pool.ts";
import { silentLog } from "../../src/std/log.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createHome, type Home } from "../kit/command.ts";
import { migrations } from "../kit/database.ts";
import { createWorld } from "../kit/world.ts";

type Case = {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Record<string, string>;
  readonly code: number;
  readonly message: RegExp;
};

async function assertRefused(home: Home, { name, args, env = {}, code, message }: Case): Promise<void> {
  const finished = await home.run(args, env);
  assert.equal(finished.code, code, `${name}: ${finished.stdout}${finished.stderr}`);
  assert.match(finished.stderr, /^holdfast: \S/, name);
  assert.match(finished.stderr, message, name);
  assert.doesNotMatch(finished.stderr, /\n\s+at |bug in Holdfast|undefined/, name);
}

const urlOf = ({ host, user, database }: ConnectionOptions, as = user): string =>
  `postgres://${as}@/${database}?host=${encodeURIComponent(String(host))}`;

/** A world with one job that ran, and a backup of it by the real command. */
async function backedUp(t: TestContext) {
  const world = await createWorld(t);
  const node = await world.node("one");
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(id, lease.epoch);
  await node.log(id, lease.epoch, { offset: 0, text: "some words\n" });
  await node.end(id, lease.epoch);
  await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await world.stopController();
  const home = createHome(t);
  const directory = path.join(home.directory, "backup");
  const env = { DATABASE_URL: urlOf(world.database.controller), DATABASE_OWNER_URL: urlOf(world.database.owner) };
  const { code, stdout, stderr } = await home.run(["backup", directory, "--json"], env);
  assert.equal(code, 0, stderr);
  return { world, home, directory, env, summary: JSON.parse(stdout) as BackupSummary };
}

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

test("a place, a root and a database that will not do are refused by name, and what is there stays", async (t) => {
  const { world, home, directory, env } = await backedUp(t);
  const file = path.join(home.directory, "file");
  fs.writeFileSync(file, "mine");
  const nowhere = path.join(home.directory, "not-mounted", "backup");
  const weak = `test_backup_${process.pid}`;
  await world.sql(`create role ${weak} login; grant usage on schema app to ${weak}`);
  await world.sql(`grant select on all tables in schema app to ${weak}`);
  cleanupOf(t).defer(async () => void (await world.sql(`drop owned by ${weak}; drop role ${weak}`)));
  const owner = { ...env, DATABASE_OWNER_URL: urlOf(world.database.owner, weak) };
  const newBackup = path.join(home.directory, "new");
  const cases: readonly Case[] = [
    { name: "a full place", args: ["backup", directory], env, code: 99, message: /is not empty/ },
    { name: "a file", args: ["backup", file], env, code: 99, message: /is a file/ },
    { name: "no parent", args: ["backup", nowhere], env, code: 100, message: /is the disk for backups mounted/ },
    { name: "a place for nobody", args: ["backup", "/proc/backup"], env, code: 100, message: /\/proc\/backup/ },
    { name: "no database", args: ["backup", newBackup], code: 87, message: /there is no database in/ },
    { name: "a role that sees less", args: ["backup", newBackup], env: owner, code: 90, message: /BYPASSRLS/ },
    { name: "not a backup", args: ["restore", home.directory], code: 101, message: /holds no backup\.json/ },
    { name: "nothing there", args: ["restore", nowhere], code: 101, message: /holds no backup\.json/ },
    { name: "another's database", args: ["restore", directory], env, code: 78, message: /DATABASE_URL: unset it/ },
  ];
  for (const one of cases) await assertRefused(home, one);
  assert.equal(fs.readFileSync(file, "utf8"), "mine");
  const made = fs.readdirSync(home.directory).filter((name) => !name.startsWith("."));
  assert.deepEqual(made.toSorted(), ["backup", "file"], "nothing else was made");

  {
    await using server = await startEmbedded({ root: home.root, log: silentLog, durable: false });
    const client = new pg.Client(server.owner);
    await client.connect();
    await client.query("create table public.kept (n int)");
    const args = ["restore", directory];
    await assertRefused(home, { name: "in use", args, code: 84, message: new RegExp(`in use by pid ${process.pid}`) });
    const empty = { name: "nothing of ours", args: ["backup", newBackup], code: 87, message: /nothing of Holdfast/ };
    await assertRefused(home, empty);
    await client.end();
  }
  const args = ["restore", directory];
  await assertRefused(home, { name: "a database", args, code: 104, message: /does not overwrite one/ });
  await using server = await startEmbedded({ root: home.root, log: silentLog, durable: false });
  const client = new pg.Client(server.owner);
  await client.connect();
  assert.deepEqual((await client.query("select * from public.kept")).rows, []);
  await client.end();
});

test("a backup of your own PostgreSQL restores into an embedded one, and --json says what was written and made", async (t) => {
  const { home, directory, summary } = await backedUp(t);
  assert.equal(summary.directory, directory);
  assert.equal(
    summary.rows,
    readManifest(directory).tables.reduce((total, table) => total + table.rows, 0),
  );
  const { code, stdout, stderr } = await home.run(["restore", directory, "--json", "--root", home.root], {
    DATABASE_URL: "postgres://x@127.0.0.1:1/x",
  });
  assert.equal(code, 0, stderr);
  const { tookMs, ...restored } = JSON.parse(stdout) as BackupSummary;
  assert.ok(tookMs > 0);
  const { tookMs: _, ...written } = summary;
  assert.deepEqual(restored, { ...written, root: home.root, migrated: [], jobs: 1, returned: 0, cancelled: 0 });
});

test("Ctrl-C during a restore leaves nothing of it", async (t) => {
  const { home, directory } = await backedUp(t);
  const restoring = home.start(["restore", directory]);
  fs.mkdirSync(home.root, { recursive: true, mode: 0o755 });
  restoring.process.kill("SIGINT");
  const code = await restoring.ended;
  assert.ok(code === 130 || code === "SIGINT", restoring.stderr());
  assert.deepEqual(
    fs.readdirSync(home.root).filter((name) => /^(restoring|database$)/.test(name)),
    [],
  );
});
