// SPDX-License-Identifier: Apache-2.0
// What a transaction sends in one flight, and what prepared statements do when a flight fails in the middle.

import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { type ConnectionOptions, openDatabase } from "../../src/db/pool.ts";
import { systemClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createTestDatabase } from "../kit/database.ts";

function open(t: TestContext, connection: ConnectionOptions) {
  const options = { log: silentLog, clock: systemClock, random: systemRandom, poolSize: 1 };
  return cleanupOf(t).use(openDatabase({ connection, ...options }));
}

type Gate = { readonly directory: string; readonly holdUntil: (text: string) => void };

/** A socket in front of PostgreSQL's that can hold back every answer until the client has sent a text. */
async function startGate(t: TestContext, host: string): Promise<Gate> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "gate-"));
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true }));
  let awaited: string | undefined;
  const server = net.createServer((client) => {
    const upstream = net.connect(path.join(host, ".s.PGSQL.5432"));
    let held: Buffer[] = [];
    client.on("data", (data) => {
      upstream.write(data);
      if (awaited === undefined || !data.includes(awaited)) return;
      awaited = undefined;
      for (const piece of held) client.write(piece);
      held = [];
    });
    upstream.on("data", (data) => (awaited === undefined ? client.write(data) : held.push(data)));
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on("error", () => {}).on("close", () => other.destroy());
  });
  await new Promise<void>((resolve) => server.listen(path.join(directory, ".s.PGSQL.5432"), resolve));
  cleanupOf(t).defer(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { directory, holdUntil: (text) => (awaited = text) };
}

test("begin, role and the first query leave before any of them is answered", { timeout: 20_000 }, async (t) => {
  const { controller } = await createTestDatabase(t);
  const gate = await startGate(t, String(controller.host));
  const db = open(t, { ...controller, host: gate.directory });
  await db.service((tx) => tx.query("select 1", []));
  gate.holdUntil("the first query");
  const body = db.tenant({ organisationId: "org_a", scopes: [] }, (tx) =>
    tx.one("select 'the first query' as text, app.current_organisation() as organisation", []),
  );
  assert.deepEqual(await body, { text: "the first query", organisation: "org_a" });
});

test("a new statement that is sent twice in one flight is prepared once", async (t) => {
  const { controller } = await createTestDatabase(t);
  const db = open(t, controller);
  const double = "select $1::int * 2 as n";
  const rows = await db.service((tx) => Promise.all([tx.one(double, [1]), tx.one(double, [2])]));
  assert.deepEqual(rows, [{ n: 2 }, { n: 4 }]);
});

test("a statement whose preparation failed behind another's error works in the next transaction", async (t) => {
  const { controller } = await createTestDatabase(t);
  const db = open(t, controller);
  const fresh = "select 42 as fresh";
  const body = db.service((tx) => Promise.all([tx.query("select 1 / 0", []), tx.one(fresh, []), tx.one(fresh, [])]));
  await assert.rejects(body, { code: "22012" });
  assert.deepEqual(await db.service((tx) => tx.one(fresh, [])), { fresh: 42 });
});
