// SPDX-License-Identifier: Apache-2.0
// A world for one test: a database of its own, a real controller on a real port, an admin, and nodes driven by hand.
// Times are scaled down by configuration; everything is taken down when the test ends.

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import pg from "pg";
import { type Client, createClient } from "../../src/client/client.ts";
import type { ControllerConfig } from "../../src/controller/context.ts";
import { type Controller, type ControllerOptions, startController } from "../../src/controller/controller.ts";
import { replaceAdminToken } from "../../src/controller/first-run.ts";
import { openDatabase } from "../../src/db/pool.ts";
import type { NodeFacts } from "../../src/protocol/node-schema.ts";
import { systemClock } from "../../src/std/clock.ts";
import { idMaker } from "../../src/std/ids.ts";
import { silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "./cleanup.ts";
import { createTestDatabase } from "./database.ts";
import { newNodeKey, NodeDouble, pairWith } from "./node-double.ts";

export const fast: Partial<ControllerConfig> = {
  leaseMs: 30_000,
  startWithinMs: 15_000,
  heartbeatMs: 3_000,
  renewMs: 100,
  sweepMs: 25,
  pollMs: 25,
  retryBaseMs: 20,
};

export type World = Awaited<ReturnType<typeof createWorld>>;

/** What a controller serves beside its API. */
export type Served = Pick<ControllerOptions, "pageDirectory" | "enrolment" | "publicUrl">;

export async function createWorld(t: TestContext, config: Partial<ControllerConfig> = {}, served: Served = {}) {
  const database = await createTestDatabase(t);
  const stack = cleanupOf(t);
  const owner = new pg.Client(database.owner);
  await owner.connect();
  stack.defer(() => owner.end());
  const sql = async <Row = Record<string, unknown>>(
    text: string,
    params: readonly unknown[] = [],
  ): Promise<readonly Row[]> => (await owner.query(text, [...params])).rows as Row[];
  const ids = idMaker(systemClock, systemRandom);
  await owner.query("begin");
  const token = await replaceAdminToken(sql, { ids, random: systemRandom, name: "test" });
  await owner.query("commit");
  const db = openDatabase({
    connection: database.controller,
    log: silentLog,
    clock: systemClock,
    random: systemRandom,
  });
  stack.defer(() => db[Symbol.asyncDispose]());

  let port = 0;
  let running: Controller | undefined;
  const startWorldController = async (): Promise<void> => {
    const options = { db, log: silentLog, host: "127.0.0.1", port, config: { ...fast, ...config }, ...served };
    running = await startController(options);
    port = Number(new URL(running.url).port);
  };
  await startWorldController();
  stack.defer(() => running?.[Symbol.asyncDispose]());
  const url = `http://127.0.0.1:${port}`;
  const admin = createClient({ baseUrl: url, credential: token });

  const node = async (name: string, facts: Partial<NodeFacts> = {}): Promise<NodeDouble> => {
    const { code } = await admin.call("pairingCreate", { body: { name } });
    const key = newNodeKey();
    const { nodeId } = await pairWith(url, code, key);
    const double = new NodeDouble({ baseUrl: url, nodeId, credential: key.credential, facts });
    await double.hello();
    return double;
  };

  return {
    db,
    database,
    ids,
    url,
    token,
    admin,
    sql,
    node,
    startController: startWorldController,
    stopController: async () => running?.[Symbol.asyncDispose](),
    /** A client whose token has just these scopes. */
    people: async (...scopes: ("fleet:read" | "fleet:write" | "fleet:admin")[]): Promise<Client> => {
      const name = `t${Math.trunc(performance.now() * 1000)}`;
      const { secret } = await admin.call("tokenCreate", { body: { name, scopes } });
      return createClient({ baseUrl: url, credential: secret });
    },
    assertLedgers: () => assertLedgers(sql),
  };
}

type Sql = <Row>(text: string, params?: readonly unknown[]) => Promise<readonly Row[]>;

/** Every job's ledger is gap-free, ends where the row says, and its epochs never fall. */
export async function assertLedgers(sql: Sql): Promise<void> {
  const rows = await sql<{ id: string; seq: number; seqs: number[]; epochs: string[] }>(
    `select j.id, j.seq, array_agg(e.seq order by e.seq) as seqs, array_agg(e.epoch order by e.seq) as epochs
       from app.job j left join app.job_event e on e.job_id = j.id group by j.organisation_id, j.id, j.seq`,
  );
  for (const row of rows) {
    const wanted = Array.from({ length: row.seq }, (_, index) => index + 1);
    assert.deepEqual(row.seqs, wanted, `${row.id}: the ledger has a gap`);
    const sorted = row.epochs.toSorted((a, b) => Number(BigInt(a) - BigInt(b)));
    assert.deepEqual(row.epochs, sorted, `${row.id}: an epoch fell`);
  }
}
