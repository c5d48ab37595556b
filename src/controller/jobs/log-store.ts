// SPDX-License-Identifier: Apache-2.0
// Output of attempts, in chunks. A chunk is taken only at the offset that comes next, and only under the lease; a repeat
// is recognised by its offset. Beyond LOG_ATTEMPT_BYTES_MAX output is counted and not kept.

import { isUtf8 } from "node:buffer";
import type { VerdictKind } from "../../protocol/agent-schema.ts";
import { isFinal, type JobState } from "../../protocol/job.ts";
import type { LogChunk, LogPage } from "../../protocol/job-schema.ts";
import { LOG_ATTEMPT_BYTES_MAX, PAGE_MAX } from "../../protocol/limits.ts";
import type { Tx } from "../../db/pool.ts";
import type { Holder } from "./lease-store.ts";

export type Chunk = {
  readonly jobId: string;
  readonly epoch: string;
  readonly stream: "stdout" | "stderr";
  readonly offset: number;
  readonly data: Buffer;
};

export type Appended = { readonly verdict: VerdictKind; readonly expectedOffset?: number } | undefined;

type AttemptRow = { readonly stored: string; readonly log_kept_bytes: string };

/** Undefined when the holder does not have the lease: the caller explains. */
export async function appendLog(tx: Tx, holder: Holder, chunk: Chunk): Promise<Appended> {
  // The share lock keeps a sweep from taking the lease away between this check and the commit.
  const held = await tx.maybeOne(
    `select 1 from app.job where id = $1 and epoch = $2 and node_id = $3 and session_id = $4 and state = 'running' for share`,
    [chunk.jobId, chunk.epoch, holder.nodeId, holder.sessionId],
  );
  if (held === undefined) return undefined;
  const attempt = await tx.one<AttemptRow>(
    `select case $3::text when 'stdout' then stdout_bytes else stderr_bytes end as stored, log_kept_bytes
       from app.attempt where job_id = $1 and epoch = $2 for update`,
    [chunk.jobId, chunk.epoch, chunk.stream],
  );
  const stored = Number(attempt.stored);
  const end = chunk.offset + chunk.data.length;
  if (end <= stored) return { verdict: "already_done", expectedOffset: stored };
  if (chunk.offset !== stored) return { verdict: "gap", expectedOffset: stored };
  const isKept = Number(attempt.log_kept_bytes) + chunk.data.length <= LOG_ATTEMPT_BYTES_MAX;
  await tx.query(
    `with counted as (
       update app.attempt
          set stdout_bytes = case $3::text when 'stdout' then $5::bigint else stdout_bytes end,
              stderr_bytes = case $3::text when 'stderr' then $5::bigint else stderr_bytes end,
              log_number = log_number + 1, log_kept_bytes = log_kept_bytes + case when $7::boolean then length($6::bytea) else 0 end
        where job_id = $1 and epoch = $2
       returning organisation_id, log_number
     )
     insert into app.job_log (organisation_id, job_id, epoch, number, stream, start_offset, data)
     select organisation_id, $1, $2, log_number, $3, $4::bigint, $6 from counted where $7`,
    [chunk.jobId, chunk.epoch, chunk.stream, chunk.offset, end, chunk.data, isKept],
  );
  return { verdict: "done", expectedOffset: end };
}

type LogRow = {
  readonly epoch: string;
  readonly number: string;
  readonly stream: "stdout" | "stderr";
  readonly start_offset: string;
  readonly at: Date;
  readonly data: Buffer;
};

/** Undefined when there is no such job. The end is only told together with the last chunks. */
export async function readLog(
  tx: Tx,
  jobId: string,
  after: string | undefined,
  limit: number = PAGE_MAX,
): Promise<LogPage | undefined> {
  const [epoch, number] = (after ?? "0.0").split(".");
  // The state is read first: chunks come before the end, so a final state means that the page below misses nothing.
  const job = await tx.maybeOne<{ state: JobState; is_cut: boolean }>(
    `select j.state, exists (
        select 1 from app.attempt a where a.job_id = j.id and a.log_kept_bytes < a.stdout_bytes + a.stderr_bytes) as is_cut
       from app.job j where j.id = $1`,
    [jobId],
  );
  if (job === undefined) return undefined;
  const { rows } = await tx.query<LogRow>(
    `select epoch, number, stream, start_offset, at, data from app.job_log
      where job_id = $1 and (epoch, number) > ($2::bigint, $3::bigint) order by epoch, number limit $4`,
    [jobId, epoch, number, limit],
  );
  return { chunks: rows.map(chunkFromRow), ended: isFinal(job.state) && rows.length < limit, cut: job.is_cut };
}

/** Agents cut chunks between characters, so that each decodes by itself. */
function chunkFromRow(row: LogRow): LogChunk {
  return {
    cursor: `${row.epoch}.${row.number}`,
    epoch: row.epoch,
    stream: row.stream,
    offset: Number(row.start_offset),
    at: row.at.toISOString(),
    text: row.data.toString("utf8"),
    ...(isUtf8(row.data) ? {} : { base64: row.data.toString("base64") }),
  };
}
