// SPDX-License-Identifier: Apache-2.0
// What machines and operators ask a controller: readiness, checks, metrics, what changed, what ended.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { createClient } from "../../src/client/client.ts";
import { Metrics } from "../../src/controller/metrics.ts";
import { checkExpiredLeases } from "../../src/controller/operations/checks.ts";
import { fleetText } from "../../src/controller/operations/fleet-metrics.ts";
import { readPulse } from "../../src/controller/operations/operation-store.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";

/** Nobody can connect, and whoever is connected is thrown out. */
async function takeDatabaseAway(world: World, isAway: boolean): Promise<void> {
  const name = String(world.database.owner.database);
  await world.sql(
    `${isAway ? "revoke connect on" : "grant connect on"} database ${name} ${isAway ? "from" : "to"} public, holdfast_controller`,
  );
  if (isAway)
    await world.sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast' and datname = $1",
      [name],
    );
}

test("ready says no while the database is away, health goes on, and both tell nothing to whom they do not know", async (t) => {
  const world = await createWorld(t);
  const get = async (path: string) => {
    const response = await fetch(world.url + path);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  assert.deepEqual(await get("/v1/ready"), { status: 200, body: { status: "ready", version: "0.1.0" } });
  await takeDatabaseAway(world, true);
  await until("it is not ready", async () => (await get("/v1/ready")).status === 503);
  const { body } = await get("/v1/ready");
  assert.equal(body["code"], "not_ready");
  assert.equal((await get("/v1/health")).status, 200);
  await takeDatabaseAway(world, false);
  await until("it is ready again", async () => (await get("/v1/ready")).status === 200);
});

test("checks name a database that is away and what to do; all is well before and after", async (t) => {
  const world = await createWorld(t);
  const states = async () => (await world.admin.call("checks", {})).checks.map(({ name, state }) => `${name} ${state}`);
  await until(
    "both loops ran",
    async () => (await states()).includes("sweep ok") && (await states()).includes("lanes ok"),
  );
  const { checks } = await world.admin.call("checks", {});
  assert.ok(
    checks.every(({ name, state, advice }) => name === "listener" || (state === "ok" && advice === "")),
    JSON.stringify(checks),
  );
  // This world listens to nobody, and says so.
  assert.equal(checks.find(({ name }) => name === "listener")?.state, "warning");
  const reader = await world.people("fleet:read");
  await assert.rejects(reader.call("checks", {}), { code: "forbidden" });
});

test("metrics are told to who may read the fleet, of that organisation only, and docs/metrics.md lists each of them", async (t) => {
  const world = await createWorld(t);
  await world.node("a");
  await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  assert.equal((await fetch(`${world.url}/metrics`)).status, 401);
  const response = await fetch(`${world.url}/metrics`, { headers: { authorization: `Bearer ${world.token}` } });
  assert.match(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const text = await response.text();
  for (const line of [
    'holdfast_jobs{state="queued"} 1',
    'holdfast_nodes{state="online"} 1',
    'holdfast_slots{state="all"} 64',
    'holdfast_info{version="0.1.0"} 1',
    'holdfast_http_requests_total{route="jobSubmit",method="POST",status="201"} 1',
  ])
    assert.ok(text.includes(`${line}\n`), `${line} is not in\n${text}`);
  assert.doesNotMatch(text, /org_|hft_/);
  const documented = fs.readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
  const zero = { all: 0, busy: 0 };
  const numbers = { jobs: {} as never, blockedJobs: 0, oldestQueuedSeconds: 0, oldestExpiredLeaseSeconds: 0 };
  const fleet = fleetText({ ...numbers, nodes: { online: 0, offline: 0, draining: 0 }, slots: zero });
  const ours = `${await new Metrics("0").registry.metrics()}\n${fleet}`.matchAll(/^# TYPE (holdfast_\w+) /gm);
  const names = [...ours].map(([, name]) => name ?? "");
  assert.ok(names.length > 10);
  assert.deepEqual(
    names.filter((name) => !documented.includes(`\`${name}\``)),
    [],
  );
});

test("a lease that ran out and is not swept is an alarm in checks and a number in metrics", async (t) => {
  const world = await createWorld(t, { sweepMs: 86_400_000, leaseMs: 100, startWithinMs: 10 });
  const node = await world.node("a");
  await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await node.claim(1);
  await world.sql("update app.job set lease_until = now() - interval '3 days'");
  await world.stopController();
  const pulse = await world.db.service(readPulse);
  const check = checkExpiredLeases(pulse.oldestExpiredLeaseMs, { sweepMs: 1000, leaseMs: 30_000 });
  assert.equal(check.state, "fault");
  assert.match(check.text, /ran out 2592\d\d s ago/);
});

test("changes tell the overview at once, then whenever something changed, also where the numbers stay the same", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const live = world.admin.stream("changes", {});
  const first = (await live.next()).value;
  assert.equal(first?.jobs.queued, 0);
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  let seen = first;
  await until("the submitted job is told", async () => {
    seen = (await live.next()).value ?? seen;
    return seen?.jobs.queued === 1;
  });
  const [lease] = await node.claim(1);
  await node.start(id, lease?.epoch ?? "");
  await until("the running job is told", async () => (await live.next()).value?.jobs.running === 1);
  await node.end(id, lease?.epoch ?? "");
  await until("its end is told", async () => (await live.next()).value?.jobs.succeeded === 1);
  // Back at the same numbers before anybody looked: told all the same, because a list may differ.
  const next = live.next();
  await world.admin.call("nodeDrain", { params: { nodeId: node.nodeId } });
  await world.admin.call("nodeActivate", { params: { nodeId: node.nodeId } });
  assert.equal((await next).value?.jobs.succeeded, 1);
  await live.return();
});

test("a credential that is revoked ends its live overview", async (t) => {
  const world = await createWorld(t);
  const made = await world.admin.call("tokenCreate", { body: { name: "reader", scopes: ["fleet:read"] } });
  const live = createClient({ baseUrl: world.url, credential: made.secret }).stream("changes", {});
  await live.next();
  await world.admin.call("tokenRevoke", { params: { credentialId: made.id } });
  await assert.rejects(
    (async () => {
      for (;;) {
        await world.admin.call("jobSubmit", { body: { command: ["true"] } });
        if ((await live.next()).done === true)
          throw Object.assign(new Error("ended"), { code: "controller_unreachable" });
      }
    })(),
    { code: "controller_unreachable" },
  );
});

test("throughput counts what ended minute by minute, without a gap and without another organisation's", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  for (const exitCode of [0, 0, 1]) {
    const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
    const [lease] = await node.claim(1);
    await node.start(id, lease?.epoch ?? "");
    await node.end(id, lease?.epoch ?? "", { exitCode });
  }
  await world.sql("update app.job set finished_at = finished_at - interval '3 minutes' where state = 'failed'");
  const { minutes } = await world.admin.call("throughput", { query: { minutes: 10 } });
  assert.equal(minutes.length, 10);
  const gaps = minutes.map(({ at }, index) => Date.parse(at) - Date.parse(minutes[0]?.at ?? "") - index * 60_000);
  assert.deepEqual(new Set(gaps), new Set([0]));
  const sum = (key: "succeeded" | "failed") => minutes.reduce((all, minute) => all + minute[key], 0);
  assert.deepEqual([sum("succeeded"), sum("failed")], [2, 1]);
  assert.equal(
    minutes.slice(-2).reduce((all, minute) => all + minute.failed, 0),
    0,
  );
});

test("every answer carries a request id, the one that a failure tells", async (t) => {
  const world = await createWorld(t);
  const response = await fetch(`${world.url}/v1/jobs`);
  const body = (await response.json()) as { requestId: string };
  assert.equal(response.headers.get("x-request-id"), body.requestId);
});
