// SPDX-License-Identifier: Apache-2.0
// Clocks that are an hour wrong, of a controller, another one and an agent, beside a database whose time is right: leases,
// expiries, due times and the order of jobs follow the database, and whose clock is wrong is said.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { createClient } from "../../src/client/client.ts";
import { createMachine, waitingCommand } from "../agent/kit.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createAdmin, startControllerProcess } from "../kit/controller-process.ts";
import { createTestDatabase } from "../kit/database.ts";
import { newNodeKey, NodeDouble, pairWith } from "../kit/node-double.ts";
import { until as untilWithin } from "../kit/until.ts";
import { wrongClock } from "../kit/wrong-clock.ts";

const LEASE_MS = 8_000;
/** What a loaded machine may be late by; an hour is far beyond it. */
const LATE_MS = 60_000;

const until: typeof untilWithin = (what, look) => untilWithin(what, look, { withinMs: LATE_MS });

async function open(t: TestContext, offset: string) {
  const database = await createTestDatabase(t);
  const owner = new pg.Client(database.owner);
  await owner.connect();
  cleanupOf(t).defer(() => owner.end());
  const admin = await createAdmin(owner);
  const start = (by: string) =>
    startControllerProcess(t, database, { HOLDFAST_LEASE_MS: String(LEASE_MS), ...wrongClock(by) });
  const one = async <Row extends pg.QueryResultRow>(sql: string, params: readonly unknown[] = []): Promise<Row> => {
    const { rows } = await owner.query<Row>(sql, [...params]);
    assert.ok(rows[0] !== undefined, sql);
    return rows[0];
  };
  return { admin, start, one, controller: await start(offset) };
}

test("P2: controllers an hour behind and ahead and an agent an hour ahead: no lease is lost early, none is held over, and jobs are due by the database", async (t) => {
  const { admin, one, start, controller } = await open(t, "-1h");
  // Sweeps as well.
  await start("+1h");
  const client = admin.at(controller.url);
  const { code } = await client.call("pairingCreate", { body: { name: "one" } });
  const machine = createMachine(t);
  const ahead = wrongClock("+1h");
  const agent = machine.start({ join: controller.url, slots: 2 }, { HOLDFAST_PAIRING_CODE: code, ...ahead });
  const go = path.join(machine.root, "go");
  const submit = async (command: string[], more: { notBefore?: string; timeLimitMs?: number } = {}): Promise<string> =>
    (await client.call("jobSubmit", { body: { command, ...more } })).id;
  const stateOf = async (id: string) => (await client.call("jobShow", { params: { jobId: id } })).state;
  const ends = (id: string) => until(`${id} succeeds`, async () => (await stateOf(id)) === "succeeded");

  const long = await submit(waitingCommand(go), { timeLimitMs: 600_000 });
  const leaseOf = (id: string) => one<{ until: Date }>("select lease_until as until from app.job where id = $1", [id]);
  await until("it runs", async () => (await stateOf(long)) === "running");
  const first = await leaseOf(long);
  await until("it was renewed under the sweeps of both", async () => {
    const now = await leaseOf(long);
    return now.until.getTime() > first.until.getTime() + 2_000;
  });
  const { attention } = await client.call("overview", {});
  assert.match(JSON.stringify(attention), /clock of node one is 3[56]\d\d\.\d s ahead/);
  const { due } = await one<{ due: Date }>("select clock_timestamp() + interval '1500 milliseconds' as due");
  const later = await submit(["true"], { notBefore: due.toISOString() });
  assert.equal(await stateOf(later), "scheduled");
  await ends(later);
  const { late_ms: dueLate } = await one<{ late_ms: string }>(
    "select extract(epoch from at - $2::timestamptz) * 1000 as late_ms from app.job_event where job_id = $1 and kind = 'due'",
    [later, due],
  );
  assert.ok(Number(dueLate) >= 0 && Number(dueLate) < LATE_MS, `${dueLate} ms late`);
  fs.writeFileSync(go, "");
  await ends(long);
  const { events } = await client.call("jobEvents", { params: { jobId: long } });
  assert.equal(events.map(({ kind }) => kind).join(), "created,claimed,started,succeeded");

  const left = await submit(waitingCommand("/never"));
  await until("it runs", async () => (await stateOf(left)) === "running");
  agent.process.kill("SIGKILL");
  await agent.ended;
  const { until: lease } = await leaseOf(left);
  const expired = () =>
    one<{ at: Date }>("select max(at) as at from app.job_event where job_id = $1 and kind = 'expired'", [left]);
  const { at } = await until("the lease runs out", async () => {
    const row = await expired();
    return row.at === null ? undefined : row;
  });
  const over = at.getTime() - lease.getTime();
  assert.ok(over >= 0 && over < LATE_MS, `returned ${over} ms after its lease`);
  // Its agent comes back late: the process goes, and the job with it, because nobody wants it any more.
  await client.call("jobCancel", { params: { jobId: left } });
  machine.start({}, ahead);
  await until("nothing of the launches is left", () => machine.launches().length === 0);
  assert.match(controller.running.stderr(), /this machine's clock is not the database's/);
});

test("P1: what controllers an hour behind and ahead say of codes, tokens and whose turn it is follows the database", async (t) => {
  const { admin, start, one, controller: behind } = await open(t, "-1h");
  const ahead = await start("+1h");
  for (const { url } of [behind, ahead]) {
    const client = admin.at(url);
    const { code } = await client.call("pairingCreate", { body: { name: "late" } });
    await one("update app.pairing_code set expires_at = now() - interval '1 second' where used_at is null returning 1");
    await assert.rejects(pairWith(url, code, newNodeKey()), { code: "pairing_code_expired" });
    const token = await client.call("tokenCreate", {
      body: { name: "brief", scopes: ["fleet:read"], expiresInDays: 1 },
    });
    const brief = createClient({ baseUrl: url, credential: token.secret });
    await brief.call("overview", {});
    await one("update app.credential set expires_at = now() - interval '1 second' where id = $1 returning 1", [
      token.id,
    ]);
    await assert.rejects(brief.call("overview", {}), { code: "unauthenticated" });
    await client.call("tokenRevoke", { params: { credentialId: token.id } });
  }
  const { code } = await admin.at(behind.url).call("pairingCreate", { body: { name: "one" } });
  const key = newNodeKey();
  const { nodeId } = await pairWith(ahead.url, code, key);
  const node = new NodeDouble({ baseUrl: ahead.url, nodeId, credential: key.credential });
  await node.hello();
  const order: string[] = [];
  for (const { url } of [ahead, behind, ahead, behind]) {
    const { id } = await admin.at(url).call("jobSubmit", { body: { command: ["true"] } });
    order.push(id);
    // Half a second apart, by the database: closer ones may be told apart wrongly.
    await until("time passes", async () => {
      const { is_over: isOver } = await one<{ is_over: boolean }>(
        "select clock_timestamp() - created_at > interval '500 milliseconds' as is_over from app.job where id = $1",
        [id],
      );
      return isOver;
    });
  }
  assert.deepEqual(
    (await node.claim(4)).map(({ jobId }) => jobId),
    order,
  );
});
