// SPDX-License-Identifier: Apache-2.0
// PostgreSQL is stopped and killed again and again under load: controller and agent live on, every accepted job ends once.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { type Embedded, startEmbedded } from "../../src/db/embedded.ts";
import { silentLog } from "../../src/std/log.ts";
import { createMachine } from "../agent/kit.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createAdmin, startControllerProcess } from "../kit/controller-process.ts";
import { assertEachOnce } from "../kit/ledger.ts";
import { startLoad } from "../kit/load.ts";
import { until } from "../kit/until.ts";

const RESTARTS = 5;

/** A server of the test's own, with durability: what was answered must be there after a SIGKILL. */
async function startServer(t: TestContext) {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "restart-"));
  fs.chmodSync(root, 0o755);
  let server: Embedded = await startEmbedded({ root, log: silentLog });
  cleanupOf(t).defer(async () => {
    await server[Symbol.asyncDispose]();
    fs.rmSync(root, { recursive: true, force: true });
  });
  const { owner, controller } = server;
  return {
    owner,
    controller,
    restart: async (how: "stopped" | "killed"): Promise<void> => {
      if (how === "killed") {
        const pidFile = path.join(String(owner.host), "postmaster.pid");
        process.kill(Number(fs.readFileSync(pidFile, "utf8").split("\n")[0]), "SIGKILL");
        await server.exited;
      }
      await server[Symbol.asyncDispose]();
      server = await startEmbedded({ root, log: silentLog });
    },
  };
}

async function connect(t: TestContext, options: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(options);
  client.on("error", () => {});
  await client.connect();
  cleanupOf(t).defer(() => client.end().catch(() => {}));
  return client;
}

test("P11: PostgreSQL is restarted five times under load: every accepted job succeeds, started once for each attempt, and no process is restarted", async (t) => {
  const server = await startServer(t);
  const controller = await startControllerProcess(t, server);
  const admin = await createAdmin(await connect(t, server.owner));
  const client = admin.at(controller.url);
  const { code } = await client.call("pairingCreate", { body: { name: "one" } });
  const machine = createMachine(t);
  const agent = machine.start({ join: controller.url, slots: 4 }, { HOLDFAST_PAIRING_CODE: code });
  const load = startLoad(Array(6).fill(client), ["true"]);
  for (let restart = 0; restart < RESTARTS; restart++) {
    const before = load.ended();
    await until("jobs get through", () => load.ended() >= before + 3, { withinMs: 60_000 });
    await server.restart(restart % 2 === 0 ? "killed" : "stopped");
  }
  const before = load.ended();
  await until("jobs get through at the end", () => load.ended() >= before + 6, { withinMs: 60_000 });
  await load.finish();
  await until("nothing of the launches is left", () => machine.launches().length === 0);
  assert.equal(controller.running.process.exitCode, null, controller.running.stderr());
  assert.equal(agent.process.exitCode, null, agent.stderr());
  const owner = await connect(t, server.owner);
  const counts = await assertEachOnce(owner);
  const { rows } = await owner.query<{ id: string }>("select id from app.job");
  assert.deepEqual(new Set(rows.map(({ id }) => id)), load.accepted);
  t.diagnostic(JSON.stringify({ ...counts, refusals: Object.fromEntries(load.refusals) }));
});
