// SPDX-License-Identifier: Apache-2.0
// Room that a node keeps for a job which was passed over too often. Rule: one for a node and one for a job; it is void as soon
// as the job no longer waits or the node is away, whoever reads it first.

import type { Requirements } from "../../protocol/placement.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId, LaneId, NodeId, OrganisationId } from "../../std/ids.ts";
import { ONLINE } from "../nodes/candidate-store.ts";

/** A job that was passed over this often has room kept for it. */
export const RESERVE_AFTER_SKIPS = 8;

export type NodeTurn = {
  /** The project whose turn was last on this node; null: none yet. */
  readonly lastProject: string | null;
  /** The lane for whose job it keeps room. */
  readonly reserved: { readonly id: LaneId; readonly requirement: Requirements } | null;
};

type TurnRow = {
  readonly last_project: string | null;
  readonly lane_id: LaneId | null;
  readonly requirement: Requirements | null;
};

/** Whose turn it is on a node. */
export async function readTurn(tx: Tx, nodeId: NodeId): Promise<NodeTurn> {
  const row = await tx.maybeOne<TurnRow>(
    `select n.last_project, l.id as lane_id, l.requirement from app.node n
       left join app.reservation r on r.organisation_id = n.organisation_id and r.node_id = n.id
       left join app.job j on j.organisation_id = r.organisation_id and j.id = r.job_id and j.state = 'queued'
       left join app.lane l on l.organisation_id = j.organisation_id and l.id = j.lane_id
      where n.id = $1`,
    [nodeId],
  );
  const { last_project: lastProject = null, lane_id: id = null, requirement = null } = row ?? {};
  return { lastProject, reserved: id === null || requirement === null ? null : { id, requirement } };
}

/** Counts that these jobs were passed over on this node; the first that was so too often has room kept for it here. */
export async function noteOvertaken(
  tx: Tx,
  node: { readonly organisationId: OrganisationId; readonly nodeId: NodeId },
  jobIds: readonly JobId[],
): Promise<void> {
  if (jobIds.length === 0) return;
  // A row that another claim holds at the moment is counted next time: nobody waits for a count.
  await tx.query(
    `update app.job set skipped = skipped + 1
      where id = any(array(select id from app.job where id = any($1) and state = 'queued' and skipped < ${RESERVE_AFTER_SKIPS}
                            for update skip locked))`,
    [jobIds],
  );
  await tx.query(
    `insert into app.reservation (organisation_id, node_id, job_id)
     select j.organisation_id, $2, j.id from app.job j
      where j.organisation_id = $1 and j.id = any($3) and j.state = 'queued' and j.skipped >= ${RESERVE_AFTER_SKIPS}
        and not exists (select 1 from app.reservation r where r.organisation_id = j.organisation_id and r.job_id = j.id)
      order by j.turn, j.id limit 1
     on conflict do nothing`,
    [node.organisationId, node.nodeId, jobIds],
  );
}

/** Removes what is void. */
export async function expireReservations(tx: Tx, heartbeatMs: number): Promise<void> {
  await tx.query(
    `delete from app.reservation r
      where not exists (select 1 from app.job j where j.organisation_id = r.organisation_id and j.id = r.job_id and j.state = 'queued')
         or not exists (select 1 from app.node n
                          join app.node_heartbeat h on h.organisation_id = n.organisation_id and h.node_id = n.id
                         where n.organisation_id = r.organisation_id and n.id = r.node_id and n.status = 'active' and ${ONLINE})`,
    [heartbeatMs],
  );
}
