// SPDX-License-Identifier: Apache-2.0
// The database takes connections away at any moment: the controller process goes on, and nothing is lost.

import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import pg from "pg";
import { readContext } from "../../src/cli/context-file.ts";
import { createClient } from "../../src/client/client.ts";
import { createHome } from "../kit/command.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createTestDatabase } from "../kit/database.ts";
import { until } from "../kit/until.ts";

test("connections that are killed again and again under load never end the controller, and each answer is a job or a 503", async (t) => {
  const database = await createTestDatabase(t);
  const home = createHome(t);
  const url = (user: string): string =>
    `postgres://${user}@/${String(database.owner.database)}?host=${encodeURIComponent(String(database.owner.host))}`;
  const controller = home.start(["controller"], {
    DATABASE_URL: url("holdfast_controller"),
    DATABASE_OWNER_URL: url("holdfast_owner"),
  });
  const context = await until("the context is written", () =>
    readContext(path.join(home.directory, "contexts.json"), "local"),
  );
  const client = createClient({ baseUrl: context.url, credential: context.token });
  const owner = new pg.Client(database.owner);
  await owner.connect();
  cleanupOf(t).defer(() => owner.end());
  const made = new Set<string>();
  const answers = new Map<string, number>();
  const ended = new AbortController();
  const load = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      const answer = await client.call("jobSubmit", { body: { command: ["true"] } }).then(
        ({ id }) => {
          made.add(id);
          return "made";
        },
        (error: { code: string }) => error.code,
      );
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  };
  const loading = Promise.all(Array.from({ length: 24 }, load));
  let kills = 0;
  // A burst of kills, then as long as one job needs to get through: the pace is the controller's, not the machine's.
  for (let round = 0; round < 20; round++) {
    const before = made.size;
    for (let burst = 0; burst < 10; burst++) {
      const { rowCount } = await owner.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast' and datname = current_database()",
      );
      kills += rowCount ?? 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until("a job gets through between two bursts", () => made.size > before);
  }
  ended.abort();
  await loading;
  assert.equal(controller.process.exitCode, null, controller.stderr());
  assert.deepEqual(
    [...answers.keys()].filter((answer) => answer !== "made" && answer !== "database_unavailable"),
    [],
  );
  assert.ok(kills >= 20, `${kills} kills`);
  await until("it serves again", () =>
    client.call("overview", {}).then(
      (overview) => overview.jobs.queued >= made.size,
      () => false,
    ),
  );
  t.diagnostic(`${kills} connections killed: ${JSON.stringify(Object.fromEntries(answers))}`);
});
