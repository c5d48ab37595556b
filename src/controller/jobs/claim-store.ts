// SPDX-License-Identifier: Apache-2.0
// Claims: skip what others hold, raise the epoch, write attempt and ledger in the same statement (promise P1: the claimed
// events are the count). A repeat of a claim's number re-delivers the leases of an answer that was lost.

import type { ClaimedJob } from "../../protocol/agent-schema.ts";
import { type Candidate, fit, type Requirements } from "../../protocol/placement.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId, LaneId, NodeId, OrganisationId } from "../../std/ids.ts";

/** Lanes that one claim looks into; more than that wait for the next claim. */
const LANES_MAX = 64;

export type Claim = {
  readonly organisationId: OrganisationId;
  readonly nodeId: NodeId;
  readonly sessionId: string;
  readonly number: number;
  readonly max: number;
  readonly startWithinMs: number;
};

type ClaimedRow = {
  readonly id: JobId;
  readonly epoch: string;
  readonly attempt: number;
  readonly command: string[];
  readonly environment: Record<string, string>;
  readonly working_directory: string | null;
  readonly input: unknown;
  readonly time_limit_ms: string | null;
};

export type ClaimNumber = "new" | "repeat" | "old";

/** Where this number stands in the session. The row lock makes claims of one node strictly one after the other. */
export async function takeClaimNumber(tx: Tx, claim: Claim): Promise<ClaimNumber> {
  const row = await tx.maybeOne<{ claim_number: string }>(
    "select claim_number from app.node where id = $1 and session_id = $2 for update",
    [claim.nodeId, claim.sessionId],
  );
  const last = row === undefined ? Number.POSITIVE_INFINITY : Number(row.claim_number);
  if (claim.number < last) return "old";
  if (claim.number === last) return "repeat";
  await tx.query("update app.node set claim_number = $2 where id = $1", [claim.nodeId, claim.number]);
  return "new";
}

/** What the lost answer held and is still to be started. */
export async function redeliver(tx: Tx, claim: Claim): Promise<readonly JobId[]> {
  const { rows } = await tx.query<{ id: JobId }>(
    "select id from app.job where node_id = $1 and session_id = $2 and claim_number = $3 and state = 'leased'",
    [claim.nodeId, claim.sessionId, claim.number],
  );
  return rows.map((row) => row.id);
}

/** The lanes with waiting jobs that this machine can run, those with the most urgent jobs first. */
export async function fittingLanes(tx: Tx, node: Candidate): Promise<readonly LaneId[]> {
  const { rows } = await tx.query<{ id: LaneId; requirement: Requirements }>(
    `select l.id, l.requirement from app.lane l
      cross join lateral (
        select priority, id from app.job j where j.lane_id = l.id and j.state = 'queued' order by priority desc, id limit 1
      ) head
      where coalesce(l.requirement ->> 'nodeId', $1) = $1 and coalesce(l.requirement ->> 'arch', $2) = $2
        and coalesce((l.requirement ->> 'memoryBytes')::numeric, 0) <= $3
      order by head.priority desc, head.id limit ${LANES_MAX}`,
    [node.nodeId, node.arch ?? "", node.memoryTotalBytes ?? 0],
  );
  // The rule itself is placement's; the conditions above only keep what cannot fit from crowding out what can.
  return rows.filter((row) => fit(row.requirement, node).kind === "fits").map((row) => row.id);
}

const CLAIM = `
with picked as (
  select j.id from unnest($1::text[]) as lane(id)
   cross join lateral (
     select id, priority from app.job where lane_id = lane.id and state = 'queued'
      order by priority desc, id limit $2 for update skip locked
   ) j
   order by j.priority desc, j.id limit $2
), claimed as (
  update app.job j
     set state = 'leased', epoch = j.epoch + 1, seq = j.seq + 1, node_id = $3, session_id = $4, claim_number = $5, reason = null,
         lease_until = now() + $6 * interval '1 millisecond'
   where j.id = any(array(select id from picked)) and j.state = 'queued'
  returning j.organisation_id, j.id, j.epoch, j.seq
), attempted as (
  insert into app.attempt (organisation_id, job_id, epoch, node_id) select organisation_id, id, epoch, $3 from claimed
), recorded as (
  insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch) select organisation_id, id, seq, 'claimed', $3, epoch from claimed
)
select id from claimed`;

export async function claimJobs(tx: Tx, claim: Claim, lanes: readonly LaneId[]): Promise<readonly JobId[]> {
  if (lanes.length === 0) return [];
  const { rows } = await tx.query<{ id: JobId }>(CLAIM, [
    lanes,
    claim.max,
    claim.nodeId,
    claim.sessionId,
    claim.number,
    claim.startWithinMs,
  ]);
  return rows.map((row) => row.id);
}

/** The bodies of claimed jobs, for their answer. */
export async function readClaimed(tx: Tx, ids: readonly JobId[], startWithinMs: number): Promise<ClaimedJob[]> {
  if (ids.length === 0) return [];
  const { rows } = await tx.query<ClaimedRow>(
    `select j.id, j.epoch, j.attempt + 1 as attempt, b.command, b.environment, b.working_directory, b.input, b.time_limit_ms
       from app.job j join app.job_body b on b.organisation_id = j.organisation_id and b.job_id = j.id
      where j.id = any($1) order by j.priority desc, j.id`,
    [ids],
  );
  return rows.map((row) => ({
    jobId: row.id,
    epoch: row.epoch,
    attempt: row.attempt,
    command: row.command,
    environment: row.environment,
    workingDirectory: row.working_directory,
    input: row.input,
    timeLimitMs: row.time_limit_ms === null ? null : Number(row.time_limit_ms),
    startWithinMs,
  }));
}
