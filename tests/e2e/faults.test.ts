// SPDX-License-Identifier: Apache-2.0
// Faults with everything real: controller, agents and jobs are processes, killed without warning.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import fs from "node:fs";
import path from "node:path";
import { createClient } from "../../src/client/client.ts";
import { readContext } from "../../src/cli/context-file.ts";
import type { ConnectionOptions } from "../../src/db/pool.ts";
import { isRunning, jobState, outputOf, pidOf, startNode, waitingCommand } from "../agent/kit.ts";
import { createHome } from "../kit/command.ts";
import { createTestDatabase } from "../kit/database.ts";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";

test("P2: a killed agent's job is claimed by another agent within its lease and two seconds, counted by claimed events", async (t) => {
  const leaseMs = 1_000;
  const world = await createWorld(t, { leaseMs });
  const first = await startNode(t, world, "first");
  const go = path.join(first.machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand(go) } });
  const pid = await pidOf(world, id);
  await startNode(t, world, "second");
  first.agent.process.kill("SIGKILL");
  const killedAt = performance.now();
  const again = await until("the second agent runs it", async () => {
    const job = await world.admin.call("jobShow", { params: { jobId: id } });
    return job.nodeName === "second" && job.state === "running" ? job : undefined;
  });
  const tookMs = performance.now() - killedAt;
  assert.ok(tookMs < leaseMs + 2_000, `${Math.round(tookMs)} ms`);
  assert.equal(again.attempt, 2);
  fs.writeFileSync(go, "");
  await jobState(world, id, "succeeded");
  await until("the first process has ended too", () => !isRunning(pid));
  const { events } = await world.admin.call("jobEvents", { params: { jobId: id } });
  assert.deepEqual(
    events.map((event) => event.kind),
    ["created", "claimed", "started", "expired", "due", "claimed", "started", "succeeded"],
  );
  await world.assertLedgers();
});

test("P1: two agents that claim at once run each of 60 jobs once", async (t) => {
  const world = await createWorld(t);
  const [a, b] = await Promise.all([startNode(t, world, "a", { slots: 4 }), startNode(t, world, "b", { slots: 4 })]);
  const file = path.join(a.machine.root, "ran");
  const ids = await Promise.all(
    Array.from(
      { length: 60 },
      async () =>
        (await world.admin.call("jobSubmit", { body: { command: ["sh", "-c", `echo $HOLDFAST_JOB_ID >> '${file}'`] } }))
          .id,
    ),
  );
  await until("all have ended", async () => (await world.admin.call("overview", {})).jobs.succeeded === 60, {
    withinMs: 60_000,
  });
  assert.deepEqual(fs.readFileSync(file, "utf8").trim().split("\n").toSorted(), ids.toSorted());
  const [row] = await world.sql<{ claims: string }>(
    "select count(*) as claims from app.job_event where kind = 'claimed'",
  );
  assert.equal(row?.claims, "60");
  assert.notEqual(a.nodeId, b.nodeId);
});

const urlOf = (connection: ConnectionOptions): string =>
  `postgres://${String(connection.user)}@/${String(connection.database)}?host=${encodeURIComponent(String(connection.host))}`;

async function startControllerProcess(
  t: TestContext,
  options: { database: Awaited<ReturnType<typeof createTestDatabase>>; listen: string },
) {
  const home = createHome(t);
  const start = () =>
    home.start(["controller", "--listen", options.listen], {
      DATABASE_URL: urlOf(options.database.controller),
      DATABASE_OWNER_URL: urlOf(options.database.owner),
      HOLDFAST_LEASE_MS: "3000",
      HOLDFAST_RENEW_MS: "200",
      HOLDFAST_HEARTBEAT_MS: "500",
      HOLDFAST_SWEEP_MS: "100",
    });
  return { home, start };
}

test("a controller that is killed in the middle of a job and started again: the job runs on, once, to its real ending", async (t) => {
  const database = await createTestDatabase(t);
  const world = await createWorld(t);
  const port = Number(new URL(world.url).port);
  await world.stopController();
  const { home, start } = await startControllerProcess(t, { database, listen: `127.0.0.1:${port}` });
  let controller = start();
  const url = `http://127.0.0.1:${port}`;
  const context = await until("the context is written", () =>
    readContext(path.join(home.directory, "contexts.json"), "local"),
  );
  const admin = createClient({ baseUrl: url, credential: context.token });
  const scene = { ...world, admin, url };
  const { machine } = await startNode(t, scene, "anna");
  const go = path.join(machine.root, "go");
  const { id } = await admin.call("jobSubmit", { body: { command: waitingCommand(go) } });
  const pid = await pidOf(scene, id);
  for (let round = 0; round < 3; round++) {
    controller.process.kill("SIGKILL");
    assert.equal(await controller.ended, "SIGKILL");
    assert.ok(isRunning(pid));
    controller = start();
    await until("the controller is back", () =>
      admin.call("health", {}).then(
        () => true,
        () => false,
      ),
    );
  }
  fs.writeFileSync(go, "");
  const job = await jobState(scene, id, "succeeded");
  assert.equal(job.attempt, 1);
  assert.equal(await outputOf(scene, id), `pid ${pid}\nover\n`);
  const { events } = await admin.call("jobEvents", { params: { jobId: id } });
  assert.deepEqual(
    events.map((event) => event.kind),
    ["created", "claimed", "started", "succeeded"],
  );
});

test("a schema that a newer program migrated is refused by this one, with what to do", async (t) => {
  const database = await createTestDatabase(t);
  const { home, start } = await startControllerProcess(t, { database, listen: "127.0.0.1:0" });
  const world = { owner: database.owner };
  const { default: pg } = await import("pg");
  const client = new pg.Client(world.owner);
  await client.connect();
  await client.query("insert into app.migration (number, name, sha256) values (9999, '9999_later.sql', 'x')");
  await client.end();
  const controller = start();
  assert.equal(await controller.ended, 91);
  assert.match(controller.stderr(), /update holdfast on this machine/);
  const status = await home.run(["db", "status"], { DATABASE_URL: urlOf(database.owner) });
  assert.equal(status.code, 91);
});
