// SPDX-License-Identifier: Apache-2.0
// Returns jobs whose lease ran out, with no person involved (promise P2). Every controller sweeps from boot, without a
// leader. After a gap in all sweeps nobody could renew, so leases get one lease of grace first. A row that cannot be moved
// is set aside; the rest of the round goes on.

import type { Tx } from "../../db/pool.ts";
import { messageOf } from "../../std/errors.ts";
import type { OrganisationId } from "../../std/ids.ts";
import type { Context } from "../context.ts";
import { LOST_COLUMNS, type LostRow, moveLost } from "./lost.ts";
import { moveJobs } from "./move-store.ts";

const BATCH = 500;

export async function sweep(context: Context): Promise<void> {
  const { db, config, log } = context;
  const graced = await db.service((tx) => grantGrace(tx, config.sweepMs, config.leaseMs));
  if (graced > 0) log.warn({ leases: graced }, "no controller swept for a while: these leases get one lease of grace");
  await promoteDue(context);
  let swept: readonly LostRow[];
  const setAside = new Set<string>();
  do {
    swept = await db
      .service((tx) => returnExpired(context, tx, setAside))
      .catch(async (error: unknown) => {
        log.error({ error: messageOf(error) }, "a sweep failed as a batch: trying its rows one by one");
        return sweepSingly(context, setAside);
      });
    wakeAll(context, swept);
  } while (swept.length === BATCH);
}

/** Notes this sweep; when the last one is long ago, leases that ran out in the gap live one lease longer. */
async function grantGrace(tx: Tx, sweepMs: number, leaseMs: number): Promise<number> {
  const last = await tx.maybeOne<{ gap_ms: string }>(
    "select round(extract(epoch from now() - at) * 1000)::bigint as gap_ms from app.sweep for update",
    [],
  );
  await tx.query(
    "insert into app.sweep (at) values (now()) on conflict (only_row) do update set at = greatest(app.sweep.at, excluded.at)",
    [],
  );
  const gapMs = last === undefined ? 0 : Number(last.gap_ms);
  if (gapMs <= Math.max(4 * sweepMs, leaseMs / 4)) return 0;
  const { count } = await tx.query(
    `update app.job set lease_until = now() + $1 * interval '1 millisecond'
      where lease_until is not null and lease_until < now() and lease_until > now() - $2 * interval '1 millisecond'`,
    [leaseMs, gapMs],
  );
  return count;
}

/** scheduled → queued when their time has come. */
async function promoteDue(context: Context): Promise<void> {
  let due: readonly { organisation_id: OrganisationId }[];
  do {
    due = await context.db.service(async (tx) => {
      const { rows } = await tx.query<{ organisation_id: OrganisationId }>(
        `with due as (
           select organisation_id, id from app.job where state = 'scheduled' and run_at <= now()
            order by run_at limit ${BATCH} for update skip locked
         ), moved as (
           update app.job j set state = 'queued', run_at = null, queued_at = now(), seq = j.seq + 1 from due d
            where j.organisation_id = d.organisation_id and j.id = d.id and j.state = 'scheduled'
           returning j.organisation_id, j.id, j.seq, j.epoch
         )
         insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch)
         select organisation_id, id, seq, 'due', 'controller', epoch from moved
         returning organisation_id`,
        [],
      );
      return rows;
    });
    for (const organisationId of new Set(due.map((row) => row.organisation_id))) {
      context.wakeups.wake(`work:${organisationId}`);
      context.wakeups.wake(`changes:${organisationId}`);
    }
  } while (due.length === BATCH);
}

const EXPIRED = { eventKind: "expired", why: "lease ran out" } as const;

/** One transaction for all; returns the rows that it looked at. */
async function returnExpired(context: Context, tx: Tx, setAside: ReadonlySet<string>): Promise<readonly LostRow[]> {
  const { rows } = await tx.query<LostRow>(
    `select ${LOST_COLUMNS} from app.job where lease_until < now() and not (id = any($2))
      order by lease_until limit $1 for update skip locked`,
    [BATCH, [...setAside]],
  );
  await moveJobs(
    tx,
    rows.map((row) => moveLost(context, row, EXPIRED)),
    "controller",
  );
  return rows;
}

/** A transaction for each row, which looks at it again under its lock: meanwhile it may have been renewed or cancelled. */
async function sweepSingly(context: Context, setAside: Set<string>): Promise<readonly LostRow[]> {
  const { rows: seen } = await context.db.service((tx) =>
    tx.query<LostRow>(
      `select ${LOST_COLUMNS} from app.job where lease_until < now() and not (id = any($2)) order by lease_until limit $1`,
      [BATCH, [...setAside]],
    ),
  );
  for (const { organisation_id: organisationId, id } of seen) {
    try {
      await context.db.service(async (tx) => {
        const row = await tx.maybeOne<LostRow>(
          `select ${LOST_COLUMNS} from app.job where organisation_id = $1 and id = $2 and lease_until < now() for update skip locked`,
          [organisationId, id],
        );
        if (row !== undefined) await moveJobs(tx, [moveLost(context, row, EXPIRED)], "controller");
      });
    } catch (error) {
      setAside.add(id);
      context.log.error(
        { jobId: id, error: messageOf(error) },
        "this job could not be swept; it is set aside for this round",
      );
    }
  }
  return seen;
}

function wakeAll(context: Context, swept: readonly LostRow[]): void {
  for (const { organisation_id: organisationId, id } of swept) {
    context.wakeups.wake(`work:${organisationId}`);
    context.wakeups.wake(`job:${id}`);
    context.wakeups.wake(`changes:${organisationId}`);
  }
}
