// SPDX-License-Identifier: Apache-2.0
// What a node writes about its leases. Every write matches job, epoch, node, session and state, and is answered with a
// verdict; one that does not match changes nothing at all (promise P3).

import type { LeaseRef, Verdict, VerdictKind } from "../../protocol/agent-schema.ts";
import type { JobState, Retry } from "../../protocol/job.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId, NodeId, OrganisationId } from "../../std/ids.ts";

export type Holder = { readonly organisationId: OrganisationId; readonly nodeId: NodeId; readonly sessionId: string };

type Present = {
  readonly id: JobId;
  readonly given_epoch: string;
  readonly epoch: string;
  readonly state: JobState;
  readonly node_id: NodeId | null;
  readonly session_id: string | null;
  readonly attempt_node_id: NodeId | null;
  readonly has_ended: boolean;
};

/** Why a write did not match, one verdict for each lease that is asked about. */
export async function explain(tx: Tx, holder: Holder, leases: readonly LeaseRef[]): Promise<Verdict[]> {
  if (leases.length === 0) return [];
  const { rows } = await tx.query<Present>(
    `select j.id, given.epoch as given_epoch, j.epoch, j.state, j.node_id, j.session_id, a.node_id as attempt_node_id,
            coalesce(a.ended_at is not null and a.outcome ->> 'kind' <> 'lost', false) as has_ended
       from unnest($1::text[], $2::bigint[]) as given(job_id, epoch)
       join app.job j on j.id = given.job_id
       left join app.attempt a on a.organisation_id = j.organisation_id and a.job_id = j.id and a.epoch = given.epoch`,
    [leases.map((lease) => lease.jobId), leases.map((lease) => lease.epoch)],
  );
  const present = new Map(rows.map((row) => [keyOf({ jobId: row.id, epoch: row.given_epoch }), row]));
  return leases.map((lease) => ({ ...lease, verdict: explainOne(holder, lease, present.get(keyOf(lease))) }));
}

function explainOne(holder: Holder, lease: LeaseRef, row: Present | undefined): VerdictKind {
  if (row === undefined) return "unknown";
  if (row.attempt_node_id !== null && row.attempt_node_id !== holder.nodeId) return "not_yours";
  if (row.attempt_node_id === holder.nodeId && row.has_ended) return "already_ended";
  if (row.epoch !== lease.epoch) return "stale_epoch";
  if (row.node_id !== holder.nodeId || row.session_id !== holder.sessionId) return "not_yours";
  return row.state === "running" ? "already_done" : "stale_epoch";
}

/** One batch may name two leases of one job, an old one and its heir: only job and epoch together are a lease. */
function keyOf(lease: LeaseRef): string {
  return `${lease.jobId}/${lease.epoch}`;
}

type DoneRow = { readonly id: JobId; readonly epoch: string };

function doneKeys(rows: readonly DoneRow[]): ReadonlySet<string> {
  return new Set(rows.map((row) => keyOf({ jobId: row.id, epoch: row.epoch })));
}

function answer(leases: readonly LeaseRef[], done: ReadonlySet<string>, missed: readonly Verdict[]): Verdict[] {
  const why = new Map(missed.map((verdict) => [keyOf(verdict), verdict]));
  return leases.map((lease) =>
    done.has(keyOf(lease))
      ? { ...lease, verdict: "done" }
      : (why.get(keyOf(lease)) ?? { ...lease, verdict: "unknown" }),
  );
}

async function explainRest(
  tx: Tx,
  holder: Holder,
  leases: readonly LeaseRef[],
  done: ReadonlySet<string>,
): Promise<Verdict[]> {
  return answer(
    leases,
    done,
    await explain(
      tx,
      holder,
      leases.filter((lease) => !done.has(keyOf(lease))),
    ),
  );
}

const GIVEN = "unnest($1::text[], $2::bigint[]) as given(job_id, epoch)";
const columns = (leases: readonly LeaseRef[]) => [
  leases.map((lease) => lease.jobId),
  leases.map((lease) => lease.epoch),
];

/** leased → running. From here on the attempt counts. */
export async function startLeases(
  tx: Tx,
  holder: Holder,
  leases: readonly LeaseRef[],
  leaseMs: number,
): Promise<Verdict[]> {
  const { rows } = await tx.query<DoneRow>(
    `with started as (
       update app.job j set state = 'running', attempt = j.attempt + 1, seq = j.seq + 1, started_at = now(),
              lease_until = now() + $5 * interval '1 millisecond'
         from ${GIVEN}
        where j.id = given.job_id and j.epoch = given.epoch and j.node_id = $3 and j.session_id = $4 and j.state = 'leased'
       returning j.organisation_id, j.id, j.epoch, j.seq, j.attempt
     ), attempted as (
       update app.attempt a set started_at = now() from started s
        where a.organisation_id = s.organisation_id and a.job_id = s.id and a.epoch = s.epoch
     ), recorded as (
       insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch, data)
       select organisation_id, id, seq, 'started', $3, epoch, jsonb_build_object('attempt', attempt) from started
     )
     select id, epoch from started`,
    [...columns(leases), holder.nodeId, holder.sessionId, leaseMs],
  );
  return explainRest(tx, holder, leases, doneKeys(rows));
}

export type Renewed = { readonly verdicts: Verdict[]; readonly cancel: LeaseRef[] };

/** Keeps running leases (a claim that has not started keeps its own window), and tells which of them a person wants ended. */
export async function renewLeases(
  tx: Tx,
  holder: Holder,
  leases: readonly LeaseRef[],
  leaseMs: number,
): Promise<Renewed> {
  if (leases.length === 0) return { verdicts: [], cancel: [] };
  const { rows } = await tx.query<{ id: JobId; epoch: string; cancel_requested: boolean }>(
    `update app.job j
        set lease_until = case when j.state = 'running' then now() + $5 * interval '1 millisecond' else j.lease_until end
       from ${GIVEN}
      where j.id = given.job_id and j.epoch = given.epoch and j.node_id = $3 and j.session_id = $4 and j.lease_until is not null
     returning j.id, j.epoch, j.cancel_requested`,
    [...columns(leases), holder.nodeId, holder.sessionId, leaseMs],
  );
  const verdicts = await explainRest(tx, holder, leases, doneKeys(rows));
  const cancel = rows.filter((row) => row.cancel_requested).map((row) => ({ jobId: row.id, epoch: row.epoch }));
  return { verdicts, cancel };
}

/** Leases of an earlier session of this node, which its new agent still has: kept under the new session. */
export async function adoptLeases(
  tx: Tx,
  holder: Holder,
  leases: readonly LeaseRef[],
  leaseMs: number,
): Promise<Verdict[]> {
  if (leases.length === 0) return [];
  const { rows } = await tx.query<DoneRow>(
    `update app.job j set session_id = $4, claim_number = null, lease_until = now() + $5 * interval '1 millisecond' from ${GIVEN}
      where j.id = given.job_id and j.epoch = given.epoch and j.node_id = $3 and j.lease_until is not null
     returning j.id, j.epoch`,
    [...columns(leases), holder.nodeId, holder.sessionId, leaseMs],
  );
  return explainRest(tx, holder, leases, doneKeys(rows));
}

export type HeldJob = {
  readonly state: "leased" | "running";
  readonly attempt: number;
  readonly unstarted: number;
  readonly retry: Retry;
  readonly cancelRequested: boolean;
};

/** Locks the job's row if this holder has the lease. */
export async function lockHeld(tx: Tx, holder: Holder, lease: LeaseRef): Promise<HeldJob | undefined> {
  const row = await tx.maybeOne<{
    state: "leased" | "running";
    attempt: number;
    unstarted: number;
    max_attempts: number;
    retry_on_failure: boolean;
    cancel_requested: boolean;
  }>(
    `select state, attempt, unstarted, max_attempts, retry_on_failure, cancel_requested from app.job
      where id = $1 and epoch = $2 and node_id = $3 and session_id = $4 and lease_until is not null for update`,
    [lease.jobId, lease.epoch, holder.nodeId, holder.sessionId],
  );
  if (row === undefined) return undefined;
  return {
    state: row.state,
    attempt: row.attempt,
    unstarted: row.unstarted,
    retry: { maxAttempts: row.max_attempts, onFailure: row.retry_on_failure },
    cancelRequested: row.cancel_requested,
  };
}

/** What comes out of a job beside its state; only ever written together with its end. */
export async function writeResult(tx: Tx, jobId: string, result: unknown, message: string | null): Promise<void> {
  await tx.query("update app.job_body set result = $2, message = $3 where job_id = $1", [
    jobId,
    result === undefined ? null : JSON.stringify(result),
    message,
  ]);
}
