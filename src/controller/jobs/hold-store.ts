// SPDX-License-Identifier: Apache-2.0
// What live leases take of their nodes' pools, as it was decided when they were claimed.

import type { JobState } from "../../protocol/job.ts";
import type { Place } from "../../protocol/placement-fit.ts";
import type { Hold } from "../../protocol/placement-pools.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId, NodeId } from "../../std/ids.ts";

/** A job has used the memory that it asked for by this time, or never will: from then on what is available tells it. */
export const SETTLE_MS = 60_000;

export type LiveHold = Hold & {
  readonly jobId: JobId;
  readonly nodeId: NodeId;
  readonly state: JobState;
};

type HoldRow = {
  readonly id: JobId;
  readonly node_id: NodeId;
  readonly state: JobState;
  readonly placement: Place | null;
  readonly is_settled: boolean;
};

/** Leases of before placement was recorded hold nothing that is counted. */
export async function listHolds(tx: Tx, nodeIds: readonly string[]): Promise<readonly LiveHold[]> {
  if (nodeIds.length === 0) return [];
  const { rows } = await tx.query<HoldRow>(
    `select j.id, j.node_id, j.state, a.placement,
            j.state = 'running' and coalesce(j.started_at < h.at - ${SETTLE_MS} * interval '1 millisecond', false) as is_settled
       from app.job j
       join app.attempt a on a.organisation_id = j.organisation_id and a.job_id = j.id and a.epoch = j.epoch
       left join app.node_heartbeat h on h.organisation_id = j.organisation_id and h.node_id = j.node_id
      where j.node_id = any($1) and j.lease_until is not null`,
    [nodeIds],
  );
  return rows.map((row) => ({
    jobId: row.id,
    nodeId: row.node_id,
    state: row.state,
    draws: row.placement?.draws ?? [],
    isSettled: row.is_settled,
  }));
}
