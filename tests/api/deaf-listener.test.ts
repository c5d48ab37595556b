// SPDX-License-Identifier: Apache-2.0
// A listening connection that is half-open hears nothing and says nothing: it is found by a probe and replaced, what it missed
// is looked at again, and until then the poll bounds the wait.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import pg from "pg";
import type { ControllerConfig } from "../../src/controller/context.ts";
import { WakeListener } from "../../src/controller/wake-listener.ts";
import { Wakeups } from "../../src/controller/wakeups.ts";
import { systemClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { startDatabaseProxy } from "../kit/database-proxy.ts";
import { keptLog } from "../kit/kept-log.ts";
import { NodeDouble } from "../kit/node-double.ts";
import { startOther } from "../kit/other-controller.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";

const HOUR = 3_600_000;
const CLAIM_WAIT_MS = 29_000;
const NEVER = { probeMs: HOUR, pollMs: HOUR };
const REPLACED = /^warn the listening database connection was lost.*our own notification was not heard/;

/** Two controllers that tell each other: one speaks, the other one listens by way of a proxy, with a node that waits there. */
async function open(t: TestContext, config: Partial<ControllerConfig>) {
  const world = await createWorld(t);
  const proxy = await startDatabaseProxy(t, world.database.controller);
  const { controller: connection } = world.database;
  const log = keptLog();
  const speaker = await startOther(t, { connection, listenConnection: connection, config: NEVER });
  const listenConnection = proxy.through(connection);
  const listener = await startOther(t, { connection, listenConnection, log, config: { pollMs: HOUR, ...config } });
  const paired = await world.node("a");
  const node = new NodeDouble({ baseUrl: listener.url, nodeId: paired.nodeId, credential: paired.credential });
  await node.hello();
  await until("both listen", async () => (await listenersOf(world)).length === 2);
  const submit = async (): Promise<string> =>
    (
      (await (
        await fetch(`${speaker.url}/v1/jobs`, {
          method: "POST",
          headers: { authorization: `Bearer ${world.token}`, "content-type": "application/json" },
          body: JSON.stringify({ command: ["true"] }),
        })
      ).json()) as { id: string }
    ).id;
  let number = 0;
  /** A claim that waits, once the controller has looked and found nothing. */
  const waitingClaim = async () => {
    const wanted = ++number;
    const claim = node.claim(1, { number: wanted, waitMs: CLAIM_WAIT_MS });
    claim.catch(() => {});
    await until(
      "the claim waits",
      async () => (await world.sql("select 1 from app.node where claim_number = $1", [wanted])).length === 1,
    );
    const began = performance.now();
    /** The job that woke it: at the end of its wait a claim looks once more, and would find it then. */
    const woken = async (): Promise<string | undefined> => {
      const [job] = await claim;
      assert.ok(performance.now() - began < CLAIM_WAIT_MS - 9_000, "answered only when its wait ended");
      return job?.jobId;
    };
    return { woken };
  };
  return { world, proxy, log, submit, waitingClaim };
}

function listenersOf(world: World) {
  return world.sql<{ pid: number }>(
    "select pid from pg_stat_activity where application_name = 'holdfast listen' and query ilike 'listen%' and datname = current_database()",
  );
}

test("a half-open listening connection is found, replaced with a warning, and what it missed is claimed", async (t) => {
  const { proxy, log, submit, waitingClaim } = await open(t, { probeMs: 100, probeWithinMs: 500 });
  for (let round = 1; round <= 2; round++) {
    const { woken } = await waitingClaim();
    for (const connection of proxy.connections()) connection.freeze();
    const id = await submit();
    assert.equal(await woken(), id);
    assert.ok(log.lines.filter((line) => REPLACED.test(line)).length >= round, log.lines.join("\n"));
  }
  // It hears again: the next wake comes without another replacement.
  const before = log.lines.length;
  const { woken } = await waitingClaim();
  const id = await submit();
  assert.equal(await woken(), id);
  assert.deepEqual(
    log.lines.slice(before).filter((line) => line.startsWith("warn")),
    [],
  );
});

test("while nobody has noticed that the listener is deaf, the poll finds the work", async (t) => {
  const { proxy, log, submit, waitingClaim } = await open(t, { probeMs: HOUR, probeWithinMs: HOUR, pollMs: 100 });
  const { woken } = await waitingClaim();
  for (const connection of proxy.connections()) connection.freeze();
  const id = await submit();
  assert.equal(await woken(), id);
  assert.deepEqual(
    log.lines.filter((line) => line.startsWith("warn")),
    [],
  );
});

test("what is queued while the listener is away is claimed when it is back, without a poll", async (t) => {
  const { world, proxy, submit, waitingClaim } = await open(t, NEVER);
  const heard = new pg.Client(world.database.owner);
  await heard.connect();
  cleanupOf(t).defer(() => heard.end());
  await heard.query("listen holdfast_wake");
  const told = new Promise<void>((resolve) => heard.on("notification", () => resolve()));
  const { woken } = await waitingClaim();
  proxy.isOpen = false;
  for (const connection of proxy.connections()) connection.cut();
  await until("nobody listens there", async () => (await listenersOf(world)).length === 1);
  const id = await submit();
  await told;
  proxy.isOpen = true;
  assert.equal(await woken(), id);
});

test("whether the listener is heard is visible, and so is when it was heard last", async (t) => {
  const world = await createWorld(t);
  const proxy = await startDatabaseProxy(t, world.database.controller);
  const listener = cleanupOf(t).use(
    new WakeListener({
      connection: proxy.through(world.database.controller),
      db: world.db,
      wakeups: new Wakeups(systemClock),
      sender: "test",
      onWake: () => {},
      probeMs: 50,
      probeWithinMs: 500,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
    }),
  );
  assert.equal(listener.isHeard(), false);
  await until("it is heard", () => listener.isHeard());
  const first = listener.lastHeardAt() ?? 0;
  await until("it is heard again", () => (listener.lastHeardAt() ?? 0) > first);
  proxy.isOpen = false;
  for (const connection of proxy.connections()) connection.freeze();
  await until("it is not heard", () => !listener.isHeard());
  proxy.isOpen = true;
  await until("it is heard once more", () => listener.isHeard());
});
