// SPDX-License-Identifier: Apache-2.0
// Returns jobs whose lease ran out, with no person involved (promise P2). Every controller sweeps from boot, without a
// leader. After a gap in all sweeps nobody could renew, so leases get one lease of grace first. A row that cannot be moved
// is set aside; the rest of the round goes on.

import { afterLoss, type Settled, UNSTARTED_RETURNS_MAX } from "../../protocol/job.ts";
import type { Tx } from "../../db/pool.ts";
import { messageOf } from "../../std/errors.ts";
import type { JobId, OrganisationId } from "../../std/ids.ts";
import type { Context } from "../context.ts";
import { type Leased, moveJobs, moveOf } from "./move-store.ts";

const BATCH = 500;

export async function sweep(context: Context): Promise<void> {
  const { db, config, log } = context;
  const graced = await db.service((tx) => grantGrace(tx, config.sweepMs, config.leaseMs));
  if (graced > 0) log.warn({ leases: graced }, "no controller swept for a while: these leases get one lease of grace");
  await promoteDue(context);
  let expired: readonly Expired[];
  const setAside = new Set<string>();
  do {
    expired = await db
      .service((tx) => returnExpired(context, tx, setAside))
      .catch(async (error: unknown) => {
        log.error({ error: messageOf(error) }, "a sweep failed as a batch: trying its rows one by one");
        return sweepSingly(context, setAside);
      });
    wakeAll(context, expired);
  } while (expired.length === BATCH);
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
           update app.job j set state = 'queued', run_at = null, seq = j.seq + 1 from due d
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
    for (const organisationId of new Set(due.map((row) => row.organisation_id)))
      context.wakeups.wake(`work:${organisationId}`);
  } while (due.length === BATCH);
}

type ExpiredRow = {
  readonly organisation_id: OrganisationId;
  readonly id: JobId;
  readonly state: "leased" | "running";
  readonly epoch: string;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly retry_on_failure: boolean;
  readonly unstarted: number;
  readonly cancel_requested: boolean;
  readonly node_id: string;
};
type Expired = { readonly organisationId: OrganisationId; readonly jobId: JobId };

async function selectExpired(tx: Tx, limit: number, setAside: ReadonlySet<string>): Promise<readonly ExpiredRow[]> {
  const { rows } = await tx.query<ExpiredRow>(
    `select organisation_id, id, state, epoch, attempt, max_attempts, retry_on_failure, unstarted, cancel_requested, node_id
       from app.job where lease_until < now() and not (id = any($2))
      order by lease_until limit $1 for update skip locked`,
    [limit, [...setAside]],
  );
  return rows;
}

async function returnExpired(context: Context, tx: Tx, setAside: ReadonlySet<string>): Promise<readonly Expired[]> {
  const rows = await selectExpired(tx, BATCH, setAside);
  await moveJobs(
    tx,
    rows.map((row) => moveExpired(context, row)),
    "controller",
  );
  return rows.map((row) => ({ organisationId: row.organisation_id, jobId: row.id }));
}

async function sweepSingly(context: Context, setAside: Set<string>): Promise<readonly Expired[]> {
  const rows = await context.db.service((tx) => selectExpired(tx, BATCH, setAside));
  const moved: Expired[] = [];
  for (const row of rows) {
    try {
      await context.db.service((tx) => moveJobs(tx, [moveExpired(context, row)], "controller"));
      moved.push({ organisationId: row.organisation_id, jobId: row.id });
    } catch (error) {
      setAside.add(row.id);
      context.log.error(
        { jobId: row.id, error: messageOf(error) },
        "this job could not be swept; it is set aside for this round",
      );
    }
  }
  return moved;
}

function moveExpired(context: Context, row: ExpiredRow) {
  const hadStarted = row.state === "running";
  const countsAnyway = !hadStarted && row.unstarted + 1 >= UNSTARTED_RETURNS_MAX;
  const attempt = row.attempt + (countsAnyway ? 1 : 0);
  const job: Leased = {
    organisationId: row.organisation_id,
    jobId: row.id,
    epoch: row.epoch,
    attempt,
    unstarted: countsAnyway ? 0 : row.unstarted + 1,
  };
  const retry = { maxAttempts: row.max_attempts, onFailure: row.retry_on_failure };
  let settled: Settled =
    hadStarted || countsAnyway ? afterLoss(attempt, retry) : { state: "queued", used: false, reason: "not-started" };
  if (row.cancel_requested) settled = { state: "cancelled" };
  const eventKind = settled.state === "queued" ? "expired" : settled.state;
  return moveOf(context, job, settled, {
    eventKind,
    isFenced: true,
    outcome: { kind: "lost" },
    eventData: { why: "lease ran out", node: row.node_id, started: hadStarted },
  });
}

function wakeAll(context: Context, expired: readonly Expired[]): void {
  for (const { organisationId, jobId } of expired) {
    context.wakeups.wake(`work:${organisationId}`);
    context.wakeups.wake(`job:${jobId}`);
  }
}
