// SPDX-License-Identifier: Apache-2.0
// The one statement that ends a lease or otherwise takes a job out of a state: the job's row, its attempt and the ledger
// change together or not at all, fenced by the epoch. Serves endings, releases, the sweep, retirement.

import type { FailReason, JobState, Settled } from "../../protocol/job.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId, OrganisationId } from "../../std/ids.ts";
import { backoffMs } from "../../std/backoff.ts";
import type { Context } from "../context.ts";

export type Move = {
  readonly organisationId: OrganisationId;
  readonly jobId: JobId;
  /** The row moves only if it still has this epoch and one of the states a lease has. */
  readonly epoch: string;
  readonly state: JobState;
  /** Whether the epoch rises, so that the holder of the lease is fenced off. */
  readonly isFenced: boolean;
  /** For scheduled: how long from now. */
  readonly delayMs: number | null;
  readonly reason: string | null;
  readonly exitCode: number | null;
  readonly attempt: number;
  readonly unstarted: number;
  readonly eventKind: string;
  readonly eventData: { readonly [key: string]: unknown };
  /** How the attempt ended, for its row. */
  readonly outcome: { readonly [key: string]: unknown };
};

const MOVE = `
with move as (
  select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::boolean[], $6::bigint[], $7::text[], $8::smallint[],
                       $9::smallint[], $10::smallint[], $11::text[], $12::jsonb[])
    as m(organisation_id, job_id, epoch, state, is_fenced, delay_ms, reason, exit_code, attempt, unstarted, event_kind, event_data)
), moved as (
  update app.job j
     set state = m.state, epoch = j.epoch + m.is_fenced::int, seq = j.seq + 1, attempt = m.attempt, unstarted = m.unstarted,
         lease_until = null, session_id = null, claim_number = null,
         node_id = case when m.state in ('queued', 'scheduled') then null else j.node_id end,
         run_at = case when m.state = 'scheduled' then now() + m.delay_ms * interval '1 millisecond' end,
         queued_at = case when m.state = 'queued' then now() else j.queued_at end,
         reason = m.reason, exit_code = m.exit_code,
         finished_at = case when m.state in ('succeeded', 'failed', 'cancelled', 'dead') then now() end
    from move m
   where j.organisation_id = m.organisation_id and j.id = m.job_id and j.epoch = m.epoch and j.lease_until is not null
  returning j.organisation_id, j.id, j.seq
), recorded as (
  insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch, data)
  select m.organisation_id, m.job_id, v.seq, m.event_kind, $13, m.epoch, m.event_data
    from moved v join move m on m.organisation_id = v.organisation_id and m.job_id = v.id
)
select id from moved`;

const END_ATTEMPTS = `
update app.attempt a set ended_at = now(), outcome = m.outcome
  from unnest($1::text[], $2::text[], $3::bigint[], $4::jsonb[]) as m(organisation_id, job_id, epoch, outcome)
 where a.organisation_id = m.organisation_id and a.job_id = m.job_id and a.epoch = m.epoch and a.ended_at is null`;

/** Returns the jobs that moved; a job whose lease has changed meanwhile is left as it is. */
export async function moveJobs(tx: Tx, moves: readonly Move[], actor: string): Promise<ReadonlySet<string>> {
  if (moves.length === 0) return new Set();
  const column = <Key extends keyof Move>(key: Key): readonly Move[Key][] => moves.map((move) => move[key]);
  const { rows } = await tx.query<{ id: string }>(MOVE, [
    column("organisationId"),
    column("jobId"),
    column("epoch"),
    column("state"),
    column("isFenced"),
    column("delayMs"),
    column("reason"),
    column("exitCode"),
    column("attempt"),
    column("unstarted"),
    column("eventKind"),
    moves.map((move) => JSON.stringify(move.eventData)),
    actor,
  ]);
  const moved = new Set(rows.map((row) => row.id));
  const ended = moves.filter((move) => moved.has(move.jobId));
  await tx.query(END_ATTEMPTS, [
    ended.map((move) => move.organisationId),
    ended.map((move) => move.jobId),
    ended.map((move) => move.epoch),
    ended.map((move) => JSON.stringify(move.outcome)),
  ]);
  return moved;
}

/** A job in a lease, as a move needs it. */
export type Leased = {
  readonly organisationId: OrganisationId;
  readonly jobId: JobId;
  readonly epoch: string;
  /** Attempts used so far, the running one included once it has started. */
  readonly attempt: number;
  readonly unstarted: number;
};

export type MoveDetails = {
  readonly eventKind?: string;
  readonly exitCode?: number | null;
  readonly eventData?: { readonly [key: string]: unknown };
  readonly outcome: { readonly [key: string]: unknown };
  readonly isFenced: boolean;
};

/** What a settled ending means for the rows. A used attempt waits its backoff; an unused one is queued again at once. */
export function moveOf(context: Context, job: Leased, settled: Settled, details: MoveDetails): Move {
  const shared = {
    organisationId: job.organisationId,
    jobId: job.jobId,
    epoch: job.epoch,
    exitCode: details.exitCode ?? null,
    outcome: details.outcome,
    unstarted: 0,
    attempt: job.attempt,
  };
  const data = (reason?: FailReason | string) => ({
    ...(reason === undefined ? {} : { reason }),
    ...details.eventData,
  });
  switch (settled.state) {
    case "succeeded":
    case "cancelled":
      return {
        ...shared,
        state: settled.state,
        isFenced: details.isFenced,
        delayMs: null,
        reason: null,
        eventKind: settled.state,
        eventData: data(),
      };
    case "failed":
    case "dead":
      return {
        ...shared,
        state: settled.state,
        isFenced: details.isFenced,
        delayMs: null,
        reason: settled.reason,
        eventKind: settled.state,
        eventData: data(settled.reason),
      };
    case "queued": {
      const { retryBaseMs, retryCapMs } = context.config;
      const wait = settled.used
        ? backoffMs({ baseMs: retryBaseMs, capMs: retryCapMs }, Math.max(1, job.attempt), context.random)
        : null;
      const back = settled.used
        ? { state: "scheduled" as const, delayMs: wait }
        : { state: "queued" as const, delayMs: null };
      const eventKind = details.eventKind ?? (settled.used ? "retried" : "returned");
      const eventData = { ...data(settled.reason), ...(wait === null ? {} : { waitMs: wait }) };
      return {
        ...shared,
        ...back,
        isFenced: true,
        reason: settled.reason,
        exitCode: null,
        unstarted: settled.used ? 0 : job.unstarted,
        eventKind,
        eventData,
      };
    }
    default:
      return settled satisfies never;
  }
}
