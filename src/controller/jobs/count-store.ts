// SPDX-License-Identifier: Apache-2.0
// Jobs in numbers: by state, by what blocks them, by the minute in which they ended.

import { type JobState, jobStates } from "../../protocol/job.ts";
import type { Throughput } from "../../protocol/access-schema.ts";
import type { Tx } from "../../db/pool.ts";

export async function countJobs(tx: Tx): Promise<Record<JobState, number>> {
  const { rows } = await tx.query<{ state: JobState; count: string }>(
    "select state, count(*) from app.job group by state",
    [],
  );
  const zero = Object.fromEntries(jobStates.map((state) => [state, 0])) as Record<JobState, number>;
  return { ...zero, ...Object.fromEntries(rows.map((row) => [row.state, Number(row.count)])) };
}

/** Queued jobs of lanes that nothing can run at present, the largest lanes first. */
export async function listBlocked(tx: Tx): Promise<readonly { reason: string; jobs: number }[]> {
  const { rows } = await tx.query<{ blocked: string; jobs: string }>(
    `select l.blocked, count(*) as jobs from app.lane l
       join app.job j on j.organisation_id = l.organisation_id and j.lane_id = l.id and j.state = 'queued'
      where l.blocked is not null group by l.blocked order by 2 desc limit 20`,
    [],
  );
  return rows.map((row) => ({ reason: row.blocked, jobs: Number(row.jobs) }));
}

type MinuteRow = {
  readonly at: Date;
  readonly succeeded: string;
  readonly failed: string;
  readonly cancelled: string;
};

/** The last minutes up to the present one, on the database's clock; minutes in which nothing ended are there as zeros. */
export async function listThroughput(tx: Tx, minutes: number): Promise<Throughput["minutes"]> {
  const { rows } = await tx.query<MinuteRow>(
    `select m.at, count(*) filter (where j.state = 'succeeded') as succeeded,
            count(*) filter (where j.state in ('failed', 'dead')) as failed,
            count(*) filter (where j.state = 'cancelled') as cancelled
       from generate_series(date_trunc('minute', now()) - ($1 - 1) * interval '1 minute', date_trunc('minute', now()), interval '1 minute') m(at)
       left join app.job j on j.organisation_id = app.current_organisation()
                          and j.finished_at >= m.at and j.finished_at < m.at + interval '1 minute'
      group by m.at order by m.at`,
    [minutes],
  );
  return rows.map((row) => ({
    at: row.at.toISOString(),
    succeeded: Number(row.succeeded),
    failed: Number(row.failed),
    cancelled: Number(row.cancelled),
  }));
}
