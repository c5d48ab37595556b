// SPDX-License-Identifier: Apache-2.0
// A really full disk, under the backup and under the restore, and a root of another account: both take root, so the runner
// leaves this file out for others.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { cleanupOf } from "../kit/cleanup.ts";
import { createHome, type Home } from "../kit/command.ts";
import { createWorld } from "../kit/world.ts";

function mount(t: TestContext, home: Home, name: string, size: string): string {
  const disk = path.join(home.directory, name);
  fs.mkdirSync(disk);
  const options = `size=${size},mode=755`;
  assert.equal(spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", disk]).status, 0, "root may mount");
  cleanupOf(t).defer(() => void spawnSync("umount", ["-l", disk]));
  return disk;
}

/** One job whose log is so many MiB of what cannot be packed. */
async function worldWithLog(t: TestContext, mebibytes: number) {
  const world = await createWorld(t);
  const node = await world.node("one");
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await world.sql(
    `insert into app.job_log (organisation_id, job_id, epoch, number, stream, start_offset, data)
     select j.organisation_id, j.id, j.epoch, n, 'stdout', n * 65536,
            (select string_agg(sha512((n * 1024 + piece)::text::bytea), ''::bytea) from generate_series(1, 1024) piece)
       from app.job j, generate_series(1, $1::int) n where j.id = $2`,
    [mebibytes * 16, id],
  );
  const { host, user, database } = world.database.owner;
  const url = `postgres://${user}@/${database}?host=${encodeURIComponent(String(host))}`;
  return { env: { DATABASE_URL: url } };
}

test("root makes nothing in the root of another account, which could not use it", async (t) => {
  const home = createHome(t);
  const { env } = await worldWithLog(t, 0);
  const directory = path.join(home.directory, "backup");
  assert.equal((await home.run(["backup", directory], env)).code, 0);
  const other = path.join(home.directory, "other");
  fs.mkdirSync(other);
  fs.chownSync(other, 65_534, 65_534);
  const { code, stderr } = await home.run(["restore", directory, "--root", other]);
  assert.equal(code, 83, stderr);
  assert.match(stderr, /belongs to another account: run this as that one, uid 65534/);
  assert.deepEqual(fs.readdirSync(other), []);
});

test("a disk that fills up under a backup or a restore is said so, and nothing is left of either", async (t) => {
  const { env } = await worldWithLog(t, 24);
  const home = createHome(t);
  const small = mount(t, home, "small", "8m");
  const cut = await home.run(["backup", path.join(small, "backup")], env);
  assert.equal(cut.code, 85, cut.stderr);
  assert.match(cut.stderr, /^holdfast: no space is left for the backup .*small\/backup: nothing was written\n/);
  assert.deepEqual(fs.readdirSync(small), []);

  const whole = await home.run(["backup", path.join(home.directory, "backup")], env);
  assert.equal(whole.code, 0, whole.stderr);
  // Too small for the binaries, for an empty database, for the rows.
  for (const size of ["32m", "88m", "144m"]) {
    const root = mount(t, home, size, size);
    const { code, stderr } = await home.run(["restore", path.join(home.directory, "backup"), "--root", root]);
    assert.equal(code, 85, `${size}: ${stderr}`);
    assert.match(stderr, /^holdfast: no space is left /, size);
    assert.deepEqual(
      fs.readdirSync(root).filter((name) => name.startsWith("restoring") || name === "database"),
      [],
      size,
    );
  }
});
