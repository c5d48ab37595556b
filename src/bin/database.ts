// SPDX-License-Identifier: Apache-2.0
// Opens the database that a controller runs on: the embedded server, or the one that DATABASE_URL names. Migrates with the
// owner's connection, serves with the controller's.

import { fileURLToPath } from "node:url";
import os from "node:os";
import path from "node:path";
import pg from "pg";
import { type OwnerQuery, replaceAdminToken } from "../controller/first-run.ts";
import { startEmbedded } from "../db/embedded.ts";
import { migrate, type Migration, migrationStatus, readMigrations } from "../db/migrate.ts";
import { checkLogin, type ConnectionOptions, type Database, openDatabase } from "../db/pool.ts";
import { systemClock } from "../std/clock.ts";
import { Failure } from "../std/errors.ts";
import { idMaker } from "../std/ids.ts";
import type { Log } from "../std/log.ts";
import { systemRandom } from "../std/random.ts";
import { fileLog } from "./logs.ts";
import type { Environment } from "./settings.ts";

export const migrations: readonly Migration[] = readMigrations(
  fileURLToPath(new URL("../../migrations", import.meta.url)),
);

export type OpenedDatabase = {
  readonly db: Database;
  /** Direct, for LISTEN. */
  readonly listenConnection: ConnectionOptions;
  readonly serverVersion: string;
  /** Resolves when the database ends by itself; never for one that is not ours. */
  readonly exited: Promise<string>;
  /** A new admin token for the command line of this account, named after the machine's context. */
  readonly replaceToken: () => Promise<string>;
};

export type EmbeddedPlace = { readonly root: string; readonly stack: AsyncDisposableStack };

/** The server and the pool are put on the stack, in the order in which they must not be undone. */
export async function openEmbedded({ root, stack }: EmbeddedPlace): Promise<OpenedDatabase> {
  const server = stack.use(await startEmbedded({ root, log: lateLog(path.join(root, "controller.log")) }));
  await migrate(server.owner, migrations);
  const log = fileLog(path.join(root, "controller.log"));
  const db = stack.use(openPool(server.controller, log));
  return {
    db,
    listenConnection: server.controller,
    serverVersion: server.serverVersion,
    exited: server.exited,
    replaceToken: () => replaceToken(server.owner),
  };
}

/** A log whose file is opened with its first line: before that the root may not be there. */
export function lateLog(file: string): Log {
  let opened: Log | undefined;
  const log = (): Log => (opened ??= fileLog(file));
  return {
    debug: (fields, message) => log().debug(fields, message),
    info: (fields, message) => log().info(fields, message),
    warn: (fields, message) => log().warn(fields, message),
    error: (fields, message) => log().error(fields, message),
    child: (fields) => log().child(fields),
  };
}

function openPool(connection: ConnectionOptions, log: Log): Database {
  return openDatabase({ connection, log, clock: systemClock, random: systemRandom });
}

export type ExternalPlace = {
  readonly env: Environment;
  readonly stack: AsyncDisposableStack;
  readonly log: Log;
  readonly isMigrating: boolean;
};

export async function openExternal({ env, stack, log, isMigrating }: ExternalPlace): Promise<OpenedDatabase> {
  const { login, owner } = connectionsFrom(env);
  const status = await migrationStatus(isMigrating ? owner : login, migrations);
  if (status.pending.length > 0) {
    if (!isMigrating)
      throw new Failure(
        "schema_older",
        `the database lacks ${status.pending.length} migrations, from ${status.pending[0]} on`,
      );
    const applied = await migrate(owner, migrations);
    log.info({ applied }, "database migrated");
  }
  for (const warning of await checkLogin(login)) log.warn({}, warning);
  const db = stack.use(openPool(login, log));
  return {
    db,
    listenConnection: login,
    serverVersion: "",
    exited: new Promise(() => {}),
    replaceToken: () => replaceToken(owner),
  };
}

/** DATABASE_URL serves; DATABASE_OWNER_URL owns, the same when it is not given. */
export function connectionsFrom(env: Environment): {
  readonly login: ConnectionOptions;
  readonly owner: ConnectionOptions;
} {
  const url = env["DATABASE_URL"];
  if (url === undefined || url === "") {
    throw new Failure(
      "database_missing",
      "there is no database: set DATABASE_URL to a PostgreSQL of yours, or use: holdfast controller --embedded",
    );
  }
  return {
    login: connectionFrom("DATABASE_URL", url),
    owner: connectionFrom("DATABASE_OWNER_URL", env["DATABASE_OWNER_URL"] ?? url),
  };
}

function connectionFrom(variable: string, url: string): ConnectionOptions {
  if (!/^postgres(ql)?:\/\//.test(url)) {
    throw new Failure("config_invalid", `${variable} must begin with postgres://`, {
      details: [{ place: variable, problem: "must begin with postgres://" }],
    });
  }
  return { connectionString: url };
}

async function replaceToken(owner: ConnectionOptions): Promise<string> {
  const client = new pg.Client(owner);
  await client.connect();
  try {
    const query: OwnerQuery = async <Row>(sql: string, params: readonly unknown[]) =>
      (await client.query(sql, [...params])).rows as Row[];
    await query("begin", []);
    const secret = await replaceAdminToken(query, {
      ids: idMaker(systemClock, systemRandom),
      random: systemRandom,
      name: `command-line-${os.hostname()}`.slice(0, 64),
    });
    await query("commit", []);
    return secret;
  } finally {
    await client.end();
  }
}
