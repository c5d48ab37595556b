// SPDX-License-Identifier: Apache-2.0
// What a database must forget when it comes back from a backup. A node may still run an attempt that it no longer knows:
// every epoch jumps over all that may have been given meanwhile, so that none is ever given twice (promise P3).

import type { IdMaker } from "../std/ids.ts";
import type { OwnerQuery } from "./first-run.ts";

export type Restoration = {
  readonly ids: IdMaker;
  /** Milliseconds since 1970: of the restore, and of the moment that the backup holds. */
  readonly now: number;
  readonly takenAt: number;
  /** For the audit: where the backup was read from and which Holdfast wrote it. */
  readonly data: { readonly [key: string]: unknown };
};

export type Restored = {
  /** Jobs that had not ended: all of them have a new epoch. */
  readonly jobs: number;
  /** Of these, those that a node held and that wait again. */
  readonly returned: number;
  /** Of these, those whose cancel had been accepted. */
  readonly cancelled: number;
};

/** More than a job can use up of epochs in the time between two clocks that disagree. */
const EPOCHS_BETWEEN = 1_000_000;

/**
 * The jump is the time itself: a job takes far less than one epoch in a millisecond, so a second restore of one and the same
 * backup lands beyond all that the first one gave. A clock that was set back counts from the backup instead.
 */
function jumpOf({ now, takenAt }: Restoration): number {
  return Math.max(now, takenAt) + EPOCHS_BETWEEN;
}

/** A claim that never started used no attempt, and one that had is given back: the job itself did nothing wrong. */
const RESTORE_JOBS = `
with restored as (
  update app.job j
     set epoch = j.epoch + $1, seq = j.seq + 1,
         state = case when j.lease_until is null then j.state when j.cancel_requested then 'cancelled' else 'queued' end,
         attempt = case when j.state = 'running' and not j.cancel_requested then j.attempt - 1 else j.attempt end,
         reason = case when j.lease_until is null then j.reason when j.cancel_requested then null else 'restored' end,
         finished_at = case when j.lease_until is not null and j.cancel_requested then now() end,
         node_id = case when j.lease_until is not null and not j.cancel_requested then null else j.node_id end,
         lease_until = null, session_id = null, claim_number = null
    from (select organisation_id, id, state, node_id from app.job
           where state in ('scheduled', 'queued', 'leased', 'running') for update) as before
   where j.organisation_id = before.organisation_id and j.id = before.id
  returning j.organisation_id, j.id, j.seq, j.epoch, j.state, before.state as state_before, before.node_id as node_before
), recorded as (
  insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch, data)
  select organisation_id, id, seq, case when state = 'cancelled' then 'cancelled' else 'restored' end, 'controller', epoch,
         jsonb_strip_nulls(jsonb_build_object('why', 'the database was restored', 'state', state_before, 'node', node_before))
    from restored
)
select count(*)::int as jobs,
       count(*) filter (where state_before in ('leased', 'running') and state = 'queued')::int as returned,
       count(*) filter (where state = 'cancelled')::int as cancelled
  from restored`;

/** On the owner's connection, in a transaction of the caller's, before anybody else is let in. */
export async function markRestored(query: OwnerQuery, restoration: Restoration): Promise<Restored> {
  const [restored] = await query<Restored>(RESTORE_JOBS, [jumpOf(restoration)]);
  // Lost, as the sweep says it: of any other end its node would think that it had reported it, and let the job run on.
  await query(
    `update app.attempt set ended_at = now(), outcome = '{"kind":"lost","why":"restored"}' where ended_at is null`,
    [],
  );
  // Who was let in or invited, and then shut out, must not come back: what a person can ask for again is void.
  await query("update app.pairing_code set expires_at = least(expires_at, now()) where used_at is null", []);
  await query("update app.login_link set expires_at = least(expires_at, now()) where used_at is null", []);
  await query("update app.credential set revoked_at = now() where kind = 'browser' and revoked_at is null", []);
  const organisations = await query<{ id: string }>("select id from app.organisation order by id", []);
  for (const { id } of organisations)
    await query(
      "insert into app.audit (organisation_id, id, actor, action, subject, data) values ($1, $2, 'controller', 'database.restore', $1, $3)",
      [id, restoration.ids("aud"), JSON.stringify({ ...restoration.data, ...restored })],
    );
  return restored ?? { jobs: 0, returned: 0, cancelled: 0 };
}
