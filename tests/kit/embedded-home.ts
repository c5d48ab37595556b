// SPDX-License-Identifier: Apache-2.0
// A home with an embedded database: a controller on it, backups of it and restores into it by the real command, and its rows
// while no program runs.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import pg from "pg";
import { readContext } from "../../src/cli/context-file.ts";
import type { BackupSummary, RestoreSummary } from "../../src/cli/programs.ts";
import { type Client, createClient } from "../../src/client/client.ts";
import { startEmbedded } from "../../src/db/embedded.ts";
import type { ConnectionOptions } from "../../src/db/pool.ts";
import { silentLog } from "../../src/std/log.ts";
import type { Home, Running } from "./command.ts";
import { newNodeKey, pairWith } from "./node-double.ts";
import { until } from "./until.ts";

export type Served = { readonly url: string; readonly admin: Client; readonly controller: Running };

/** A controller on the embedded database of this home. */
export async function serve(home: Home): Promise<Served> {
  const file = path.join(home.directory, "contexts.json");
  fs.rmSync(file, { force: true });
  const controller = home.start(["controller", "--embedded"], { HOLDFAST_SWEEP_MS: "50", HOLDFAST_POLL_MS: "50" });
  const ended = (): boolean => controller.process.exitCode !== null;
  const context = await until("the controller serves", () => readContext(file, "local") ?? (ended() || undefined), {
    withinMs: 60_000,
  });
  assert.ok(context !== true, controller.stderr());
  return { url: context.url, admin: createClient({ baseUrl: context.url, credential: context.token }), controller };
}

export async function stop({ controller }: Served): Promise<void> {
  controller.process.kill("SIGTERM");
  assert.equal(await controller.ended, 0, controller.stderr());
}

export type Enrolled = { readonly nodeId: string; readonly credential: string };

export async function enrol({ url, admin }: Served, name: string): Promise<Enrolled> {
  const { code } = await admin.call("pairingCreate", { body: { name } });
  const key = newNodeKey();
  return { nodeId: (await pairWith(url, code, key)).nodeId, credential: key.credential };
}

export async function backUp(
  home: Home,
  name: string,
): Promise<{ readonly directory: string; readonly summary: BackupSummary }> {
  const directory = path.join(home.directory, name);
  const { code, stdout, stderr } = await home.run(["backup", directory, "--json"]);
  assert.equal(code, 0, stderr);
  assert.equal(stderr, "");
  return { directory, summary: JSON.parse(stdout) as BackupSummary };
}

export async function restore(home: Home, directory: string): Promise<RestoreSummary> {
  const { code, stdout, stderr } = await home.run(["restore", directory, "--json"]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as RestoreSummary;
}

/** Works on the database of this home while no program of it runs. */
export async function withDatabase(home: Home, work: (owner: ConnectionOptions) => Promise<void>): Promise<void> {
  await using server = await startEmbedded({ root: home.root, log: silentLog, durable: false });
  await work(server.owner);
}

type Sql = <Row>(text: string, params?: readonly unknown[]) => Promise<readonly Row[]>;

export async function withSql(owner: ConnectionOptions, work: (sql: Sql) => Promise<void>): Promise<void> {
  const client = new pg.Client(owner);
  await client.connect();
  try {
    await work(
      async <Row>(text: string, params: readonly unknown[] = []) =>
        (await client.query(text, [...params])).rows as Row[],
    );
  } finally {
    await client.end();
  }
}
