// SPDX-License-Identifier: Apache-2.0
// Between two transactions the connection itself has no role and no organisation: seen on the connection, not through our API.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { openDatabase } from "../../src/db/pool.ts";
import { systemClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createTestDatabase } from "../kit/database.ts";

test("after a commit, and after a rollback, the connection is the bare login again", async (t) => {
  const { controller } = await createTestDatabase(t);
  const opened: pg.Client[] = [];
  // pg's pool takes the class of its connections as an option: so the test gets hold of the one that is used.
  class Seen extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config);
      opened.push(this);
    }
  }
  const connection = { ...controller, Client: Seen };
  const options = { log: silentLog, clock: systemClock, random: systemRandom, poolSize: 1 };
  const db = cleanupOf(t).use(openDatabase({ connection, ...options }));
  const bare = async () => {
    const { rows } = await (opened[0] ?? new pg.Client()).query(
      "select current_user as role, app.current_organisation() as organisation, coalesce(current_setting('app.scopes', true), '') as scopes",
    );
    assert.deepEqual(rows, [{ role: "holdfast_controller", organisation: null, scopes: "" }]);
  };
  const tenant = { organisationId: "org_a", scopes: ["fleet:read"] };
  await db.tenant(tenant, (tx) => tx.query("select 1", []));
  await bare();
  await assert.rejects(db.tenant(tenant, (tx) => tx.query("select 1 / 0", [])));
  await bare();
  assert.equal(opened.length, 1);
});
