// SPDX-License-Identifier: Apache-2.0
// The real controller as a process of its own on a database of the test's, and an admin's client for it that stays valid
// whatever the controller's own command line does.

import path from "node:path";
import type { TestContext } from "node:test";
import type pg from "pg";
import { readContext } from "../../src/cli/context-file.ts";
import { type Client, createClient } from "../../src/client/client.ts";
import { replaceAdminToken } from "../../src/controller/first-run.ts";
import type { ConnectionOptions } from "../../src/db/pool.ts";
import { systemClock } from "../../src/std/clock.ts";
import { idMaker } from "../../src/std/ids.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "./cleanup.ts";
import { createHome, type Running } from "./command.ts";
import type { TestDatabase } from "./database.ts";
import { until } from "./until.ts";

export type ControllerProcess = {
  readonly url: string;
  readonly running: Running;
  /** Starts it again on the port that it had. */
  readonly startAgain: () => Promise<Running>;
};

/** A start beside other tests on two processors. */
const SLOW = { withinMs: 60_000 };

const scaled = {
  HOLDFAST_LEASE_MS: "5000",
  HOLDFAST_HEARTBEAT_MS: "1000",
  HOLDFAST_RENEW_MS: "200",
  HOLDFAST_SWEEP_MS: "100",
  HOLDFAST_RETRY_BASE_MS: "50",
};

export async function startControllerProcess(
  t: TestContext,
  database: TestDatabase,
  env: Readonly<Record<string, string>> = {},
): Promise<ControllerProcess> {
  const home = createHome(t);
  const start = async (listen: string): Promise<{ running: Running; url: string }> => {
    const running = home.start(["controller"], {
      DATABASE_URL: urlOf(database.controller),
      DATABASE_OWNER_URL: urlOf(database.owner),
      HOLDFAST_LISTEN: listen,
      ...scaled,
      ...env,
    });
    // How a controller stops is not what these tests are about.
    cleanupOf(t).defer(() => void running.process.kill("SIGKILL"));
    const url = await until(
      "the controller listens",
      () => {
        if (running.process.exitCode !== null) throw new Error(running.stderr());
        return /"url":"(http:[^"]+)"/.exec(running.stderr())?.[1];
      },
      SLOW,
    );
    await until("the context is written", () => readContext(path.join(home.directory, "contexts.json"), "local"), SLOW);
    return { running, url };
  };
  const first = await start("127.0.0.1:0");
  return {
    ...first,
    startAgain: async () => (await start(new URL(first.url).host)).running,
  };
}

/** libpq's form: host is the directory of the socket. */
export function urlOf({ user, host, database }: ConnectionOptions): string {
  return `postgres://${user}@/${String(database)}?host=${encodeURIComponent(String(host))}`;
}

export type Admin = { readonly token: string; readonly at: (url: string) => Client };

export async function createAdmin(owner: pg.Client): Promise<Admin> {
  const query = async <Row>(text: string, params: readonly unknown[]): Promise<readonly Row[]> =>
    (await owner.query(text, [...params])).rows as Row[];
  await owner.query("begin");
  const ids = idMaker(systemClock, systemRandom);
  const token = await replaceAdminToken(query, { ids, random: systemRandom, name: "test" });
  await owner.query("commit");
  return { token, at: (baseUrl) => createClient({ baseUrl, credential: token }) };
}
