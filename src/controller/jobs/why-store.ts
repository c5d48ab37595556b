// SPDX-License-Identifier: Apache-2.0
// What the answer to "why is this job where it is" is made of. Everything is read at one moment; bounded, however long the
// queue is.

import type { JobWhy } from "../../protocol/placement-schema.ts";
import { whyOf } from "../../protocol/placement-why.ts";
import type { Tx } from "../../db/pool.ts";
import type { OrganisationId } from "../../std/ids.ts";
import { listCandidates } from "../nodes/candidate-store.ts";
import { listHolds } from "./hold-store.ts";
import { findJob } from "./job-store.ts";

/** Jobs that are counted before one, of one lane. */
const AHEAD_MAX = 1_000;

type AheadRow = { readonly jobs: string; readonly is_least: boolean };

/** Undefined: there is no such job. */
export async function explainJob(
  tx: Tx,
  asked: { readonly organisationId: OrganisationId; readonly jobId: string; readonly heartbeatMs: number },
): Promise<JobWhy | undefined> {
  const job = await findJob(tx, asked.jobId);
  if (job === undefined) return undefined;
  const [candidates, reservations, ahead] = await Promise.all([
    listCandidates(tx, asked.heartbeatMs),
    tx.query<{ node_id: string; job_id: string }>("select node_id, job_id from app.reservation", []),
    countAhead(tx, asked.jobId),
  ]);
  const nodes = candidates.get(asked.organisationId) ?? [];
  const holds = await listHolds(
    tx,
    nodes.map((node) => node.nodeId),
  );
  return whyOf({
    job,
    nodes,
    holds,
    position: { jobs: Number(ahead.jobs), isLeast: ahead.is_least },
    reservations: new Map(reservations.rows.map((row) => [row.node_id, row.job_id])),
  });
}

/** Waiting jobs whose turn is before this one's, in lanes that are not blocked. */
async function countAhead(tx: Tx, jobId: string): Promise<AheadRow> {
  return tx.one<AheadRow>(
    `select coalesce(sum(c.jobs), 0) as jobs, coalesce(bool_or(c.jobs = ${AHEAD_MAX}), false) as is_least
       from app.job mine
      cross join app.lane l
      cross join lateral (
        select count(*) as jobs from (
          select 1 from app.job j where j.lane_id = l.id and j.state = 'queued' and (j.turn, j.id) < (mine.turn, mine.id)
           limit ${AHEAD_MAX}) as first) c
      where mine.id = $1 and mine.state = 'queued' and (l.blocked is null or l.id = mine.lane_id)`,
    [jobId],
  );
}
