// SPDX-License-Identifier: Apache-2.0
// A controller that is told to stop while it starts does so: nobody says it a second time.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { createHome } from "../kit/command.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { urlOf } from "../kit/controller-process.ts";
import { createEmptyDatabase } from "../kit/database.ts";
import { until } from "../kit/until.ts";

/** See pg_advisory_lock in migrate.ts. */
const MIGRATION_LOCK = 4_711_074_400;

test("SIGTERM while a controller waits to migrate is not forgotten: it stops as soon as it has started", async (t) => {
  const database = await createEmptyDatabase(t);
  const owner = new pg.Client(database.owner);
  await owner.connect();
  cleanupOf(t).defer(() => owner.end());
  await owner.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
  const { controller, owner: all } = database;
  const running = createHome(t).start(["controller"], {
    DATABASE_URL: urlOf(controller),
    DATABASE_OWNER_URL: urlOf(all),
  });
  cleanupOf(t).defer(() => void running.process.kill("SIGKILL"));
  await until(
    "it waits for the lock",
    async () =>
      (
        await owner.query(
          "select 1 from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())",
        )
      ).rowCount,
    { withinMs: 60_000 },
  );
  running.process.kill("SIGTERM");
  await owner.query("select pg_advisory_unlock($1)", [MIGRATION_LOCK]);
  await until("it has ended", () => running.process.exitCode !== null, { withinMs: 60_000 });
  assert.equal(await running.ended, 0, running.stderr());
});
