// SPDX-License-Identifier: Apache-2.0
// A database connection that is lost in the middle of a completion, before its COMMIT or after: the node repeats its report
// and learns what became of it, and the ledger has one ending.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { createClient } from "../../src/client/client.ts";
import { startDatabaseProxy } from "../kit/database-proxy.ts";
import { startOther } from "../kit/other-controller.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";
import { jobState, startNode } from "./kit.ts";

/** So long that no loaded machine runs out of them. */
const CALM = { leaseMs: 60_000, startWithinMs: 60_000 };

/** A world with a second controller that reaches the database by way of a proxy, and a real agent at that one. */
async function open(t: TestContext) {
  const world = await createWorld(t, CALM);
  const proxy = await startDatabaseProxy(t, world.database.controller);
  const connection = proxy.through(world.database.controller);
  const other = await startOther(t, { connection, config: CALM });
  const { machine, agent } = await startNode(t, world, "one", { join: other.url, slots: 4 });
  return { world, proxy, other, machine, agent };
}

const silent = (go: string): string[] => ["sh", "-c", `while [ ! -e '${go}' ]; do sleep 0.02; done`];

async function kindsOf(world: World, jobId: string): Promise<string> {
  const { events } = await world.admin.call("jobEvents", { params: { jobId } });
  return events.map((event) => event.kind).join();
}

const ONCE = "created,claimed,started,succeeded";

test("P11: a completion whose connection is lost before its COMMIT is repeated and done once", async (t) => {
  const { world, machine, agent } = await open(t);
  const go = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", { body: { command: silent(go) } });
  await jobState(world, id, "running");
  await world.sql("begin");
  await world.sql("select from app.job where id = $1 for update", [id]);
  fs.writeFileSync(go, "");
  const waiting = await until("the completion waits for the row", async () => {
    await world.sql("select pg_stat_clear_snapshot()");
    const [row] = await world.sql<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and application_name = 'holdfast'
        and wait_event_type = 'Lock' and query ~ 'from app.job\\s.* for update$'`,
    );
    return row;
  });
  await world.sql("select pg_terminate_backend($1, 5000)", [waiting.pid]);
  await world.sql("commit");
  await jobState(world, id, "succeeded");
  await until("nothing of the launch is left", () => machine.launches().length === 0);
  assert.match(agent.stderr(), /"verdict":"done"/);
  assert.equal(await kindsOf(world, id), ONCE);
  await world.assertLedgers();
});

test("P11: a completion whose COMMIT was executed and whose answer was lost is repeated, and told that it is ended", async (t) => {
  const { world, proxy, machine, agent } = await open(t);
  let lost = 0;
  proxy.watch = (way, piece, connection) => {
    const isAnswer = way === "toClient" && piece.includes("COMMIT\0") && connection.sent.includes('{"succeeded"}');
    if (!isAnswer || lost > 0) return false;
    lost++;
    return true;
  };
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await jobState(world, id, "succeeded");
  await until("nothing of the launch is left", () => machine.launches().length === 0);
  assert.equal(lost, 1);
  assert.match(agent.stderr(), /"verdict":"already_ended"/);
  assert.equal(await kindsOf(world, id), ONCE);
  await world.assertLedgers();
});

test("P1: every fifth answer to a COMMIT is lost, whatever it was for: each accepted job is made, claimed, started and ended once", async (t) => {
  const { world, proxy, other, machine } = await open(t);
  let commits = 0;
  proxy.watch = (way, piece) => way === "toClient" && piece.includes("COMMIT\0") && ++commits % 5 === 0;
  const client = createClient({ baseUrl: other.url, credential: world.token });
  const submit = (idempotencyKey: string): Promise<string> =>
    client.call("jobSubmit", { body: { command: ["echo", idempotencyKey] }, idempotencyKey }).then(
      ({ id }) => id,
      (error: { code: string }) => {
        assert.equal(error.code, "database_unavailable");
        return submit(idempotencyKey);
      },
    );
  const ids = await Promise.all(Array.from({ length: 12 }, (_, index) => submit(`key-${index}`)));
  assert.equal(new Set(ids).size, 12);
  for (const id of ids) await jobState(world, id, "succeeded");
  proxy.watch = () => false;
  await until("nothing of the launches is left", () => machine.launches().length === 0);
  assert.equal((await world.sql("select id from app.job")).length, 12);
  for (const id of ids) assert.equal(await kindsOf(world, id), ONCE);
  await world.assertLedgers();
  t.diagnostic(`${Math.floor(commits / 5)} answers lost`);
});
