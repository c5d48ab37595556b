// SPDX-License-Identifier: Apache-2.0
// The pool and its transactions. Each sets role and organisation in one statement, sent in the same flight as begin and
// the first query; every promise and the tag of COMMIT are checked, because an error in the middle of a flight turns
// COMMIT into ROLLBACK without an error on the COMMIT itself.

import { createHash } from "node:crypto";
import pg from "pg";
import { backoffMs } from "../std/backoff.ts";
import type { Clock } from "../std/clock.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import type { Log } from "../std/log.ts";
import type { Random } from "../std/random.ts";

export type Rows<Row> = { readonly rows: readonly Row[]; readonly count: number };

/** One transaction. Queries may be sent without awaiting each; one that fails fails the transaction, awaited or not. */
export type Tx = {
  query<Row = Record<string, unknown>>(sql: string, params: readonly unknown[]): Promise<Rows<Row>>;
  /** Exactly one row; none or more is a bug. */
  one<Row = Record<string, unknown>>(sql: string, params: readonly unknown[]): Promise<Row>;
  maybeOne<Row = Record<string, unknown>>(sql: string, params: readonly unknown[]): Promise<Row | undefined>;
};

export type TenantContext = { readonly organisationId: string; readonly scopes: readonly string[] };

export type Database = AsyncDisposable & {
  /** As holdfast_tenant under row-level security of one organisation. The body may run again after a deadlock: keep it re-runnable. */
  tenant<Result>(context: TenantContext, body: (tx: Tx) => Promise<Result>): Promise<Result>;
  /** As holdfast_service: across organisations, on just the columns that it was granted. */
  service<Result>(body: (tx: Tx) => Promise<Result>): Promise<Result>;
};

export type ConnectionOptions = pg.ClientConfig;

export type DatabaseOptions = {
  readonly connection: ConnectionOptions;
  /** Connections at most. */
  readonly poolSize?: number;
  /** How long an answer may take until its connection counts as lost: a half-open one is silent for ever. */
  readonly answerWithinMs?: number;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
};

const POOL_SIZE = 8;
const STATEMENT_TIMEOUT_MS = 30_000;
/** Longer than the server's own limit, which leaves the connection whole. */
const ANSWER_WITHIN_MS = 40_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;
/** By its time limit or an operator. */
const STATEMENT_CANCELLED = "57014";
const TRIES_MAX = 4;
const RETRY = { baseMs: 5, capMs: 200 };

export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    ...options.connection,
    max: options.poolSize ?? POOL_SIZE,
    pipeline: true,
    application_name: "holdfast",
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: options.answerWithinMs ?? ANSWER_WITHIN_MS,
    keepAlive: true,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    connectionTimeoutMillis: 10_000,
  });
  // From its birth on: the pool takes its own listener away at a check-out, a moment before we could add ours.
  pool.on("connect", (client) => client.on("error", () => {}));
  pool.on("error", (error) =>
    options.log.warn({ error: messageOf(error) }, "a database connection was lost while idle"),
  );
  const run = async <Result>(role: Role, body: (tx: Tx) => Promise<Result>): Promise<Result> => {
    // A migration outdates the plans of every pooled connection: each that fails is replaced, so there are no more than these.
    let outdatedLeft = pool.options.max;
    for (let tries = 1; ; ) {
      try {
        return await transact(pool, role, body);
      } catch (error) {
        if (isOutdatedPlan(error) && outdatedLeft-- > 0) continue;
        if (tries >= TRIES_MAX || !isWorthRetrying(error)) throw translate(error);
        await options.clock.sleep(backoffMs(RETRY, tries++, options.random));
      }
    }
  };
  let ended: Promise<void> | undefined;
  return {
    tenant: ({ organisationId, scopes }, body) =>
      run({ name: "holdfast_tenant", organisationId, scopes: scopes.join(" ") }, body),
    service: (body) => run({ name: "holdfast_service", organisationId: "", scopes: "" }, body),
    [Symbol.asyncDispose]: () => (ended ??= pool.end()),
  };
}

type Role = {
  readonly name: "holdfast_tenant" | "holdfast_service";
  readonly organisationId: string;
  readonly scopes: string;
};

const SET_ROLE =
  "select set_config('role', $1, true), set_config('app.organisation', $2, true), set_config('app.scopes', $3, true)";

async function transact<Result>(pool: pg.Pool, role: Role, body: (tx: Tx) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const noteBroken = (error: Error): void => {
    broken = error;
  };
  client.on("error", noteBroken);
  const sent: Promise<unknown>[] = [];
  /** Its failure fails the transaction, awaited by the body or not. */
  const watch: Watch = (promise) => {
    sent.push(promise);
    return quiet(promise);
  };
  let isClosed = false;
  const send = (sql: string, params?: readonly unknown[]): Promise<pg.QueryResult> => {
    if (isClosed) throw new Error(`bug: a query after its transaction has ended: ${sql}`);
    const promise =
      params === undefined ? client.query(sql) : client.query({ name: nameOf(sql), text: sql, values: [...params] });
    return watch(promise);
  };
  try {
    void send("begin");
    void send(SET_ROLE, [role.name, role.organisationId, role.scopes]);
    const outcome = await body(txOf(send, watch)).then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    isClosed = true;
    if ("error" in outcome) {
      const settled = await Promise.allSettled(sent);
      await client.query("rollback").catch(noteBroken);
      throw firstCause(outcome.error, settled);
    }
    const committed = client.query("commit");
    sent.push(committed);
    await Promise.all(sent);
    const { command } = await committed;
    if (command !== "COMMIT")
      throw new Failure("internal", `a transaction ended with ${command} where COMMIT was asked for`);
    return outcome.value;
  } catch (error) {
    // A connection whose prepared statements a migration outdated is replaced too.
    if (isConnectionLost(error) || isOutdatedPlan(error))
      broken ??= error instanceof Error ? error : new Error(messageOf(error));
    else if (broken === undefined) await client.query("rollback").catch(noteBroken);
    throw error;
  } finally {
    client.off("error", noteBroken);
    client.release(broken ?? false);
  }
}

/** "Current transaction is aborted" (25P02) only says that an earlier query of the flight failed: that one is the cause. */
function firstCause(error: unknown, settled: readonly PromiseSettledResult<unknown>[]): unknown {
  if (codeOf(error) !== "25P02") return error;
  const first = settled.find((result) => result.status === "rejected");
  return first === undefined ? error : first.reason;
}

type Send = (sql: string, params: readonly unknown[]) => Promise<pg.QueryResult>;
type Watch = <Value>(promise: Promise<Value>) => Promise<Value>;

function txOf(send: Send, watch: Watch): Tx {
  const query = <Row>(sql: string, params: readonly unknown[]): Promise<Rows<Row>> =>
    quiet(send(sql, params).then((result) => ({ rows: result.rows as Row[], count: result.rowCount ?? 0 })));
  const atMostOne = <Row>(sql: string, params: readonly unknown[]): Promise<Row | undefined> =>
    query<Row>(sql, params).then(({ rows }) => {
      if (rows.length > 1) throw new Error(`bug: expected at most one row, got ${rows.length}: ${sql}`);
      return rows[0];
    });
  return {
    query,
    maybeOne: (sql, params) => watch(atMostOne(sql, params)),
    one: <Row>(sql: string, params: readonly unknown[]) =>
      watch(
        atMostOne<Row>(sql, params).then((row) => {
          if (row === undefined) throw new Error(`bug: expected one row, got none: ${sql}`);
          return row;
        }),
      ),
  };
}

/** Not awaited by the body is not unhandled: the transaction looks at every query before it commits. */
function quiet<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => {});
  return promise;
}

const names = new Map<string, string>();

/** A prepared statement's name: the texts are constants of this program, so there are few. */
function nameOf(sql: string): string {
  const known = names.get(sql);
  if (known !== undefined) return known;
  const name = `hf_${createHash("sha256").update(sql).digest("hex").slice(0, 20)}`;
  names.set(sql, name);
  return name;
}

/** Serialization failure and deadlock: the same body may succeed at once. */
function isWorthRetrying(error: unknown): boolean {
  const code = codeOf(error);
  return code === "40001" || code === "40P01";
}

/** By the routine that says so: the message is in the server's language. */
function isOutdatedPlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "0A000" && error.routine === "RevalidateCachedQuery";
}

const SOCKET_CALLS = ["connect", "read", "write", "getaddrinfo", "shutdown"];

/** A socket's error, not one of the body's own files. */
function isSocketError(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some((inner) => isSocketError(inner));
  if (!(error instanceof Error) || !("syscall" in error) || typeof error.syscall !== "string") return false;
  return SOCKET_CALLS.includes(error.syscall);
}

function isConnectionLost(error: unknown): boolean {
  if (isSocketError(error)) return true;
  const code = codeOf(error);
  if (/^(08|57P0)/.test(code) || code === "53300" || code === STATEMENT_CANCELLED) return true;
  return /Connection terminated|Query read timeout|timeout exceeded when trying to connect|not queryable/.test(
    messageOf(error),
  );
}

/** No such database, no such role, wrong password. */
function isLoginRefused(error: unknown): boolean {
  return error instanceof pg.DatabaseError && ["3D000", "28P01", "28000"].includes(error.code ?? "");
}

/** A lost or refused connection in our words; anything else as it is. */
export function translate(error: unknown): unknown {
  if (isLoginRefused(error))
    return new Failure("database_unavailable", `the database refuses the login: ${messageOf(error)}`, { cause: error });
  if (!isConnectionLost(error)) return error;
  return new Failure("database_unavailable", `the database does not answer: ${messageOf(error)}`, { cause: error });
}

/** Whether the error is a unique violation (23505) of this constraint or index. */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return (
    codeOf(error) === "23505" &&
    typeof error === "object" &&
    error !== null &&
    "constraint" in error &&
    error.constraint === constraint
  );
}

/** What is wrong with the role that a controller logs in as, a sentence each: it should own nothing and bypass nothing. */
export async function checkLogin(connection: ConnectionOptions): Promise<readonly string[]> {
  const client = new pg.Client({ ...connection, application_name: "holdfast check" });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ name: string; bypasses: boolean; owns: boolean; lacks: boolean }>(
      `select current_user as name, rolsuper or rolbypassrls as bypasses,
              exists (select 1 from pg_class where relnamespace = 'app'::regnamespace and relowner = r.oid) as owns,
              not (pg_has_role(current_user, 'holdfast_tenant', needed) and pg_has_role(current_user, 'holdfast_service', needed)) as lacks
         from pg_roles r,
              (select case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end as needed) n
        where rolname = current_user`,
    );
    const [role] = rows;
    if (role === undefined) return [];
    if (role.lacks)
      throw new Failure(
        "database_rights",
        `role ${role.name} may not set role holdfast_tenant and holdfast_service: grant it both`,
      );
    const should =
      "give DATABASE_URL a role that owns nothing, such as holdfast_controller, and keep this one for DATABASE_OWNER_URL";
    if (role.bypasses) return [`role ${role.name} bypasses row-level security outside of requests: ${should}`];
    return role.owns ? [`role ${role.name} owns the tables: ${should}`] : [];
  } catch (error) {
    throw translate(error);
  } finally {
    await client.end().catch(() => {});
  }
}
