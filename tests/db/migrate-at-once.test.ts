// SPDX-License-Identifier: Apache-2.0
// Eight processes migrate one empty database at once, and the one that holds the lock is killed between two files: each file
// is applied once, and none of the others fails.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { createHome } from "../kit/command.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { urlOf } from "../kit/controller-process.ts";
import { createEmptyDatabase, migrations, type TestDatabase } from "../kit/database.ts";
import { startDatabaseProxy } from "../kit/database-proxy.ts";
import { until } from "../kit/until.ts";

const PROCESSES = 8;
const program = fileURLToPath(new URL("../kit/migrate-main.ts", import.meta.url));

/** Counts each row that says a file was applied, also one whose transaction came to nothing. */
async function open(t: TestContext): Promise<{ database: TestDatabase; owner: pg.Client }> {
  const database = await createEmptyDatabase(t);
  const owner = new pg.Client(database.owner);
  await owner.connect();
  cleanupOf(t).defer(() => owner.end());
  return { database, owner };
}

async function assertAppliedOnce(owner: pg.Client): Promise<void> {
  const { rows } = await owner.query<{ number: number; sha256: string }>(
    "select number, sha256 from app.migration order by number",
  );
  assert.deepEqual(
    rows,
    migrations.map(({ number, sha256 }) => ({ number, sha256 })),
  );
}

/** Its own way to the database for each process: the first that sends the second file dies of it. */
async function waysWithOneDeath(t: TestContext, database: TestDatabase) {
  const processes: (ChildProcess | undefined)[] = [];
  const killed: number[] = [];
  const ways = await Promise.all(
    Array.from({ length: PROCESSES }, async (_, index) => {
      const proxy = await startDatabaseProxy(t, database.owner);
      proxy.watch = (way, piece) => {
        if (way !== "toServer" || killed.length > 0 || !piece.includes("create table app.credential")) return false;
        killed.push(index);
        processes[index]?.kill("SIGKILL");
        return true;
      };
      return proxy;
    }),
  );
  return { ways, processes, killed };
}

test("eight processes at once, the one with the lock killed between two files: each is applied once, the rest succeed", async (t) => {
  for (let round = 0; round < 3; round++) {
    const { database, owner } = await open(t);
    const { ways, processes, killed } = await waysWithOneDeath(t, database);
    const ends = ways.map((way, index) => {
      const child = spawn(process.execPath, [program, JSON.stringify(way.through(database.owner))], {
        stdio: ["ignore", "ignore", "pipe"],
      });
      processes[index] = child;
      let said = "";
      child.stderr.on("data", (piece: Buffer) => {
        said += piece.toString();
      });
      return new Promise<{ code: number | string | null; said: string }>((resolve) =>
        child.once("close", (code, signal) => resolve({ code: code ?? signal, said })),
      );
    });
    for (const [index, { code, said }] of (await Promise.all(ends)).entries())
      assert.equal(code, killed.includes(index) ? "SIGKILL" : 0, said);
    assert.equal(killed.length, 1);
    await assertAppliedOnce(owner);
  }
});

test("eight controllers start at once on an empty database, one is killed in the middle of its migrations: the others serve", async (t) => {
  const { database, owner } = await open(t);
  const { ways, processes, killed } = await waysWithOneDeath(t, database);
  const running = ways.map((way, index) => {
    const one = createHome(t).start(["controller"], {
      DATABASE_URL: urlOf(database.controller),
      DATABASE_OWNER_URL: urlOf(way.through(database.owner)),
    });
    processes[index] = one.process;
    return one;
  });
  await Promise.all(
    running.map((one, index) =>
      until(
        `controller ${index} listens or was killed`,
        () => {
          assert.equal(one.process.exitCode, null, one.stderr());
          return one.stderr().includes("this account's command line is set up") || one.process.signalCode === "SIGKILL";
        },
        { withinMs: 150_000 },
      ),
    ),
  );
  assert.deepEqual(
    running.flatMap((one, index) => (one.process.signalCode === "SIGKILL" ? [index] : [])),
    killed,
  );
  assert.equal(killed.length, 1);
  await assertAppliedOnce(owner);
  assert.equal((await owner.query("select id from app.organisation")).rowCount, 1);
});
