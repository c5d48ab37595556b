// SPDX-License-Identifier: Apache-2.0
// A restore is whole or not there: real processes, killed at each step.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { connectionsTo } from "../../src/db/cluster.ts";
import type { ConnectionOptions } from "../../src/db/pool.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createHome } from "../kit/command.ts";
import { migrations } from "../kit/database.ts";
import { backUp, restore, serve, stop } from "../kit/embedded-home.ts";
import { until } from "../kit/until.ts";

/** Waits for a moment of the restore; resolves with what undoes the wait's own means. */
type Moment = { readonly name: string; readonly reached: (t: TestContext, root: string) => Promise<unknown> };

const moments: readonly Moment[] = [
  {
    name: "initdb",
    reached: (_, root) =>
      until("a cluster is being made", () => fs.readdirSync(root).some((name) => name.startsWith("restoring.new"))),
  },
  {
    name: "the server's start",
    reached: (_, root) =>
      until("the server starts", () => fs.existsSync(path.join(root, "restoring", "postmaster.pid"))),
  },
  {
    name: "the load",
    reached: async (t, root) => {
      const { owner } = connectionsTo(path.join(root, "restoring"));
      const client = await until("the schema is there", () => lockLanes(owner));
      cleanupOf(t).defer(() => client.end().catch(() => {}));
      await until("the load waits for our lock", async () => {
        // Within a transaction the activity is read once and then remembered.
        await client.query("select pg_stat_clear_snapshot()");
        const { rowCount } = await client.query(
          "select from pg_stat_activity where application_name = 'holdfast restore' and wait_event_type = 'Lock'",
        );
        return rowCount === 1;
      });
    },
  },
  {
    name: "the stop of the server",
    reached: async (_, root) => {
      const pidFile = path.join(root, "restoring", "postmaster.pid");
      await until("the server runs", () => fs.existsSync(pidFile));
      await until("the server has stopped", () => !fs.existsSync(pidFile));
    },
  },
];

/** Once the schema is whole: a migration, too, would wait for the lock. */
async function lockLanes(owner: ConnectionOptions): Promise<pg.Client | undefined> {
  const client = new pg.Client(owner);
  client.on("error", () => {});
  try {
    await client.connect();
    const { rowCount } = await client.query("select from app.migration where number = $1", [migrations.at(-1)?.number]);
    if (rowCount !== 1) throw new Error("not yet");
    await client.query("begin; lock table app.lane in access share mode");
    return client;
  } catch {
    await client.end().catch(() => {});
    return undefined;
  }
}

test("a restore that is killed at any step leaves a root without a database, into which the next one restores", async (t) => {
  const home = createHome(t);
  const served = await serve(home);
  await served.admin.call("jobSubmit", { body: { command: ["true"] } });
  const { directory } = await backUp(home, "backup");
  await stop(served);
  const database = path.join(home.root, "database");
  fs.rmSync(database, { recursive: true });
  for (const { name, reached } of moments) {
    const restoring = home.start(["restore", directory]);
    await reached(t, home.root);
    restoring.process.kill("SIGKILL");
    await restoring.ended;
    if (name === "the stop of the server" && fs.existsSync(database)) break;
    assert.ok(!fs.existsSync(database), name);
    const { code, stderr } = await home.run(["up", "--once"]);
    assert.equal(code, 83, name);
    assert.match(stderr, /a restore into .* was begun and not finished: run holdfast restore again/);
  }
  if (!fs.existsSync(database)) await restore(home, directory);
  assert.deepEqual(
    fs.readdirSync(home.root).filter((name) => name.startsWith("restoring")),
    [],
  );
  const again = await serve(home);
  assert.equal((await again.admin.call("overview", {})).jobs.queued, 1);
  await stop(again);
});
