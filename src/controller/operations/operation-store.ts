// SPDX-License-Identifier: Apache-2.0
// What the database tells about itself and about a fleet, in numbers.

import type { JobState } from "../../protocol/job.ts";
import type { Tx } from "../../db/pool.ts";
import { countJobs } from "../jobs/count-store.ts";
import { countNodes, type NodeCounts } from "../nodes/node-counts.ts";
import { listNodes } from "../nodes/node-store.ts";

export type Pulse = {
  readonly serverVersion: string;
  /** The database's clock. */
  readonly now: Date;
  /** How long the oldest lease has been over without being swept; 0 when none is. */
  readonly oldestExpiredLeaseMs: number;
};

/** One cheap look across organisations; service role. */
export async function readPulse(tx: Tx): Promise<Pulse> {
  const row = await tx.one<{ version: string; now: Date; expired_ms: string }>(
    `select current_setting('server_version') as version, clock_timestamp() as now,
            coalesce((select round(extract(epoch from now() - min(lease_until)) * 1000) from app.job where lease_until < now()), 0)::bigint as expired_ms`,
    [],
  );
  return {
    serverVersion: row.version,
    now: row.now,
    oldestExpiredLeaseMs: Number(row.expired_ms),
  };
}

export type FleetNumbers = NodeCounts & {
  readonly jobs: Readonly<Record<JobState, number>>;
  readonly blockedJobs: number;
  readonly oldestQueuedSeconds: number;
  readonly oldestExpiredLeaseSeconds: number;
};

/** Of the organisation that this transaction is in. */
export async function readFleetNumbers(tx: Tx, heartbeatMs: number): Promise<FleetNumbers> {
  const jobs = await countJobs(tx);
  const row = await tx.one<{ blocked: string; oldest_queued: string; oldest_expired: string }>(
    `select (select count(*) from app.lane l join app.job j on j.organisation_id = l.organisation_id and j.lane_id = l.id and j.state = 'queued'
              where l.blocked is not null) as blocked,
            coalesce((select extract(epoch from now() - min(created_at)) from app.job where state = 'queued'), 0) as oldest_queued,
            coalesce((select extract(epoch from now() - min(lease_until)) from app.job where lease_until < now()), 0) as oldest_expired`,
    [],
  );
  return {
    jobs,
    blockedJobs: Number(row.blocked),
    oldestQueuedSeconds: Number(row.oldest_queued),
    oldestExpiredLeaseSeconds: Number(row.oldest_expired),
    ...countNodes(await listNodes(tx, heartbeatMs)),
  };
}
