// SPDX-License-Identifier: Apache-2.0
// Where a backup or a restore may not go: each is one clear line with an exit code, and what is there stays.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import pg from "pg";
import type { BackupSummary } from "../../src/cli/programs.ts";
import { readManifest } from "../../src/db/backup-format.ts";
import { startEmbedded } from "../../src/db/embedded.ts";
import { silentLog } from "../../src/std/log.ts";
import { assertRefused, backedUp, type Case, urlOf } from "../kit/backed-up.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";

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
  const begun = (): boolean =>
    fs.existsSync(home.root) && fs.readdirSync(home.root).some((name) => name.startsWith("restoring"));
  await until("it makes a cluster", begun);
  restoring.process.kill("SIGINT");
  assert.equal(await restoring.ended, 130, restoring.stderr());
  assert.match(restoring.stderr(), /^Interrupted: nothing was made\.\n$/);
  assert.deepEqual(
    fs.readdirSync(home.root).filter((name) => /^(restoring|database$)/.test(name)),
    [],
  );
});
