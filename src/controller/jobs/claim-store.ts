// SPDX-License-Identifier: Apache-2.0
// Claims: skip what others hold, raise the epoch, write attempt and ledger in the same statement (promise P1: the claimed
// events are the count). A repeat of a claim's number re-delivers the leases of an answer that was lost.

import type { ClaimedJob } from "../../protocol/agent-schema.ts";
import type { Place } from "../../protocol/placement-fit.ts";
import type { MachineFacts } from "../../protocol/placement-pools.ts";
import { type Candidate, isFit, judge } from "../../protocol/placement-verdict.ts";
import type { Requirements } from "../../protocol/placement.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId, LaneId, NodeId, OrganisationId } from "../../std/ids.ts";
import type { Take, WaitingLane } from "./claim-plan.ts";

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
  readonly placement: Place | null;
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

type LaneRow = {
  readonly id: LaneId;
  readonly requirement: Requirements;
  readonly project: string;
  readonly jobs: readonly { readonly id: JobId; readonly turn: number; readonly waited: number }[];
};

/** What the conditions of WAITING_LANES compare with; generous where it is not exact. */
type Reach = {
  readonly node: Candidate & { readonly facts: MachineFacts };
  readonly hostBytes: number;
  readonly gpuBytes: number;
};

/**
 * The rule itself is placement's; the conditions here only keep what cannot fit from crowding out what can. Of each project
 * the lanes whose turn is oldest come first, so that no project crowds out another.
 */
export const WAITING_LANES = `
with fitting as materialized (
  select l.id, l.requirement, coalesce(l.project_id, '') as project,
         array(select jsonb_build_object('id', j.id, 'turn', extract(epoch from j.turn) * 1000,
                                         'waited', extract(epoch from now() - j.queued_at) * 1000)
                 from app.job j where j.lane_id = l.id and j.state = 'queued' order by j.turn, j.id limit $1) as jobs
    from app.lane l
   where coalesce(l.requirement ->> 'nodeId', $2) = $2 and coalesce(l.requirement ->> 'arch', $3) = $3
     and coalesce((l.requirement ->> 'memoryBytes')::numeric, 0) <= $4
     and coalesce(l.requirement ->> 'scene', $5) is not distinct from $5
     and (l.requirement ->> 'servedModel' is null or l.requirement ->> 'servedModel' = any($6))
     and (l.requirement ->> 'needFullBytes' is null
          or (l.requirement ->> 'needFullBytes')::numeric - coalesce((l.requirement ->> 'needHostBytes')::numeric, 0) <= $7
          or (coalesce((l.requirement ->> 'needMinBytes')::numeric, (l.requirement ->> 'needFullBytes')::numeric) <= $4
              and coalesce(l.requirement -> 'paths' ? 'cpu', true)))
)
select id, requirement, project, jobs from fitting where cardinality(jobs) > 0
 order by row_number() over (partition by project order by (jobs[1] ->> 'turn')::numeric, id), (jobs[1] ->> 'turn')::numeric, id
 limit ${LANES_MAX}`;

/** The lanes with waiting jobs that this machine can run by its totals, each with its first jobs. */
export async function waitingLanes(tx: Tx, reach: Reach, max: number): Promise<readonly WaitingLane[]> {
  const { node, hostBytes, gpuBytes } = reach;
  const { rows } = await tx.query<LaneRow>(WAITING_LANES, [
    max,
    node.nodeId,
    node.facts.arch,
    hostBytes,
    node.served.scene,
    node.served.models,
    gpuBytes,
  ]);
  return rows
    .filter((row) => isFit(judge(row.requirement, node)))
    .map(({ jobs, ...lane }) => ({
      ...lane,
      jobs: jobs.map(({ id, turn, waited }) => ({ id, turnMs: turn, waitedMs: waited })),
    }));
}

export const CLAIM = `
with wanted as (
  select * from unnest($1::text[], $2::int[], $3::jsonb[]) as w(lane_id, place, placement)
), quota as (
  select lane_id, max(place) as jobs from wanted group by lane_id
), picked as (
  select q.lane_id, j.id, row_number() over (partition by q.lane_id order by j.turn, j.id) as place from quota q
   cross join lateral (
     select id, turn from app.job where lane_id = q.lane_id and state = 'queued'
      order by turn, id limit q.jobs for update skip locked
   ) j
), claimed as (
  update app.job j
     set state = 'leased', epoch = j.epoch + 1, seq = j.seq + 1, node_id = $4, session_id = $5, claim_number = $6, reason = null,
         skipped = 0, lease_until = now() + $7 * interval '1 millisecond'
   where j.id = any(array(select id from picked)) and j.state = 'queued'
  returning j.organisation_id, j.id, j.epoch, j.seq
), attempted as (
  insert into app.attempt (organisation_id, job_id, epoch, node_id, placement)
  select c.organisation_id, c.id, c.epoch, $4, w.placement
    from claimed c join picked p on p.id = c.id join wanted w on w.lane_id = p.lane_id and w.place = p.place
), recorded as (
  insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch) select organisation_id, id, seq, 'claimed', $4, epoch from claimed
)
select c.id, p.lane_id from claimed c join picked p on p.id = c.id`;

/** Takes the first free jobs of these lanes, as many of each as there are takes. */
export async function claimJobs(
  tx: Tx,
  claim: Claim,
  takes: readonly Take[],
): Promise<readonly { readonly id: JobId; readonly lane_id: LaneId }[]> {
  if (takes.length === 0) return [];
  const seen = new Map<LaneId, number>();
  const places = takes.map(({ laneId }) => {
    const place = (seen.get(laneId) ?? 0) + 1;
    seen.set(laneId, place);
    return place;
  });
  const { rows } = await tx.query<{ id: JobId; lane_id: LaneId }>(CLAIM, [
    takes.map((take) => take.laneId),
    places,
    takes.map(({ place }) => (place.draws.length === 0 ? null : JSON.stringify(place))),
    claim.nodeId,
    claim.sessionId,
    claim.number,
    claim.startWithinMs,
  ]);
  return rows;
}

/** The bodies of claimed jobs, for their answer. */
export async function readClaimed(tx: Tx, ids: readonly JobId[], startWithinMs: number): Promise<ClaimedJob[]> {
  if (ids.length === 0) return [];
  const { rows } = await tx.query<ClaimedRow>(
    `select j.id, j.epoch, j.attempt + 1 as attempt, b.command, b.environment, b.working_directory, b.input, b.time_limit_ms,
            a.placement
       from app.job j join app.job_body b on b.organisation_id = j.organisation_id and b.job_id = j.id
       left join app.attempt a on a.organisation_id = j.organisation_id and a.job_id = j.id and a.epoch = j.epoch
      where j.id = any($1) order by j.turn, j.id`,
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
    ...(row.placement === null ? {} : { placement: { path: row.placement.path, gpus: gpusOf(row.placement) } }),
    startWithinMs,
  }));
}

function gpusOf({ draws }: Place): string[] {
  return draws.map((draw) => draw.gpu).filter((gpu) => gpu !== null);
}
