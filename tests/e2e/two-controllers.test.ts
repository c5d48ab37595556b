// SPDX-License-Identifier: Apache-2.0
// Two controller processes on one database with a real agent at each: one is killed and comes back, and nobody's job is lost
// or started twice.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import pg from "pg";
import { createMachine } from "../agent/kit.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createAdmin, startControllerProcess } from "../kit/controller-process.ts";
import { createTestDatabase } from "../kit/database.ts";
import { assertEachOnce } from "../kit/ledger.ts";
import { startLoad } from "../kit/load.ts";
import { until } from "../kit/until.ts";

test("P1: of two controllers under load one is killed and comes back: every job ends once, and no lease is started twice", async (t) => {
  const database = await createTestDatabase(t);
  const owner = new pg.Client(database.owner);
  await owner.connect();
  cleanupOf(t).defer(() => owner.end());
  const admin = await createAdmin(owner);
  const env = { HOLDFAST_LEASE_MS: "2000" };
  const [stays, dies] = await Promise.all([
    startControllerProcess(t, database, env),
    startControllerProcess(t, database, env),
  ]);
  const machines = await Promise.all(
    [stays, dies].map(async ({ url }, index) => {
      const { code } = await admin.at(url).call("pairingCreate", { body: { name: `node-${index}` } });
      const machine = createMachine(t);
      return { machine, agent: machine.start({ join: url, slots: 2 }, { HOLDFAST_PAIRING_CODE: code }) };
    }),
  );
  const runs = path.join(machines[0]?.machine.root ?? "", "runs");
  fs.writeFileSync(runs, "");
  const command = ["sh", "-c", 'echo "$HOLDFAST_JOB_ID" >> "$1"; sleep 0.05', "sh", runs];
  const clients = [stays, dies].flatMap(({ url }) => [admin.at(url), admin.at(url), admin.at(url)]);
  const load = startLoad(clients, command);
  const more = async (jobs: number): Promise<void> => {
    const wanted = load.ended() + jobs;
    await until(`${jobs} more jobs end`, () => load.ended() >= wanted, { withinMs: 60_000 });
  };
  const claimedBy = async (node: string): Promise<number> => {
    const { rows } = await owner.query<{ n: number }>(
      "select count(*)::int as n from app.job_event e join app.node n on n.id = e.actor where e.kind = 'claimed' and n.name = $1",
      [node],
    );
    return rows[0]?.n ?? 0;
  };
  await until("both agents work", async () => (await claimedBy("node-0")) > 0 && (await claimedBy("node-1")) > 0);
  dies.running.process.kill("SIGKILL");
  await dies.running.ended;
  // More than half of the people ask the one that is left; the others wait for theirs.
  await more(6);
  const before = await claimedBy("node-1");
  await dies.startAgain();
  await until("the agent of the killed one works again", async () => (await claimedBy("node-1")) > before + 2);
  await load.finish();
  for (const { machine, agent } of machines) {
    await until("nothing of the launches is left", () => machine.launches().length === 0);
    assert.equal(agent.process.exitCode, null, agent.stderr());
  }
  const counts = await assertEachOnce(owner);
  const ran = Map.groupBy(fs.readFileSync(runs, "utf8").trim().split("\n"), (id) => id);
  const { rows } = await owner.query<{ job_id: string; n: number }>(
    "select job_id, count(*)::int as n from app.job_event where kind = 'started' group by job_id",
  );
  assert.deepEqual(new Set(ran.keys()), load.accepted);
  for (const { job_id: id, n } of rows)
    assert.ok((ran.get(id)?.length ?? 0) <= n, `${id} ran more often than it started`);
  t.diagnostic(JSON.stringify({ ...counts, refusals: Object.fromEntries(load.refusals) }));
});
