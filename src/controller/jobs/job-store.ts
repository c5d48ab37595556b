// SPDX-License-Identifier: Apache-2.0
// Jobs as people see and submit them. A list reads the narrow row and the command, never an input, a result or a log.

import { createHash } from "node:crypto";
import { finalStates, type JobState, jobCan } from "../../protocol/job.ts";
import type { Job, JobDetail, JobEvent, JobSubmission } from "../../protocol/job-schema.ts";
import { JOB_SEARCH_MAX, PAGE_DEFAULT } from "../../protocol/limits.ts";
import type { Requirements } from "../../protocol/placement.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId, LaneId, NodeId, OrganisationId, ProjectId } from "../../std/ids.ts";
import { canonicalJson } from "../../std/json.ts";

type JobRow = {
  readonly id: JobId;
  readonly state: JobState;
  readonly reason: string | null;
  readonly blocked: string | null;
  readonly command: readonly string[];
  readonly priority: number;
  readonly requirement: Job["requires"];
  readonly project: string | null;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly retry_on_failure: boolean;
  readonly epoch: string;
  readonly node_id: NodeId | null;
  readonly node_name: string | null;
  readonly cancel_requested: boolean;
  readonly exit_code: number | null;
  readonly created_at: Date;
  readonly run_at: Date | null;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
};

function fromRow(row: JobRow): Job {
  return {
    id: row.id,
    state: row.state,
    reason: row.reason,
    blocked: row.state === "queued" ? row.blocked : null,
    command: [...row.command],
    priority: row.priority,
    requires: row.requirement,
    project: row.project,
    attempt: row.attempt,
    retry: { maxAttempts: row.max_attempts, onFailure: row.retry_on_failure },
    epoch: row.epoch,
    nodeId: row.node_id,
    nodeName: row.node_name,
    cancelRequested: row.cancel_requested,
    exitCode: row.exit_code,
    createdAt: row.created_at.toISOString(),
    notBefore: row.run_at?.toISOString() ?? null,
    startedAt: row.started_at?.toISOString() ?? null,
    finishedAt: row.finished_at?.toISOString() ?? null,
  };
}

const JOB_COLUMNS = `j.id, j.state, j.reason, l.blocked, b.command, j.priority, l.requirement, j.attempt, j.max_attempts,
  j.retry_on_failure, j.epoch, j.node_id, n.name as node_name, j.cancel_requested, j.exit_code, j.created_at, j.run_at,
  j.started_at, j.finished_at, p.name as project`;
const JOB_FROM = `from app.job j
  join app.lane l on l.organisation_id = j.organisation_id and l.id = j.lane_id
  join app.job_body b on b.organisation_id = j.organisation_id and b.job_id = j.id
  left join app.node n on n.organisation_id = j.organisation_id and n.id = j.node_id
  left join app.project p on p.organisation_id = j.organisation_id and p.id = j.project_id`;

export async function findJob(tx: Tx, id: string): Promise<Job | undefined> {
  const row = await tx.maybeOne<JobRow>(`select ${JOB_COLUMNS} ${JOB_FROM} where j.id = $1`, [id]);
  return row === undefined ? undefined : fromRow(row);
}

type DetailRow = JobRow & {
  readonly environment: Record<string, string>;
  readonly working_directory: string | null;
  readonly input: unknown;
  readonly result: unknown;
  readonly message: string | null;
  readonly time_limit_ms: string | null;
  readonly labels: Record<string, string>;
};

export async function findJobDetail(tx: Tx, id: string): Promise<JobDetail | undefined> {
  const row = await tx.maybeOne<DetailRow>(
    `select ${JOB_COLUMNS}, b.environment, b.working_directory, b.input, b.result, b.message, b.time_limit_ms, b.labels
       ${JOB_FROM} where j.id = $1`,
    [id],
  );
  if (row === undefined) return undefined;
  return {
    ...fromRow(row),
    environment: row.environment,
    workingDirectory: row.working_directory,
    input: row.input,
    result: row.result,
    message: row.message,
    timeLimitMs: row.time_limit_ms === null ? null : Number(row.time_limit_ms),
    labels: row.labels,
  };
}

export type JobListQuery = {
  readonly state?: JobState;
  readonly nodeId?: string;
  readonly project?: string;
  readonly search?: string;
  readonly limit?: number;
  readonly cursor?: string;
};

const FILTERED = `
  ($1::text is null or j.state = $1) and ($2::text is null or j.id < $2) and ($3::text is null or j.node_id = $3)
  and ($4::text is null or j.project_id in (select id from app.project where name = $4))`;

/** Without a search only the filters; with one, the newest that the filters leave are looked at, so that it always ends soon. */
export async function listJobs(tx: Tx, query: JobListQuery) {
  const limit = query.limit ?? PAGE_DEFAULT;
  const filters = [query.state ?? null, query.cursor ?? null, query.nodeId ?? null, query.project ?? null, limit];
  const { rows } =
    query.search === undefined
      ? await tx.query<JobRow>(
          `select ${JOB_COLUMNS} ${JOB_FROM} where ${FILTERED} order by j.id desc limit $5`,
          filters,
        )
      : await tx.query<JobRow>(
          `select ${JOB_COLUMNS} ${JOB_FROM}
            where j.id in (select j.id from app.job j where ${FILTERED} order by j.id desc limit ${JOB_SEARCH_MAX})
              and (strpos(j.id, $6) > 0 or strpos(lower(b.labels::text), lower($6)) > 0
                   or strpos(lower((select string_agg(word, ' ' order by at)
                                      from jsonb_array_elements_text(b.command) with ordinality as words(word, at))), lower($6)) > 0)
            order by j.id desc limit $5`,
          [...filters, query.search],
        );
  const items = rows.map(fromRow);
  return { items, nextCursor: items.length === limit ? (items.at(-1)?.id ?? null) : null };
}

type EventRow = {
  readonly seq: number;
  readonly kind: JobEvent["kind"];
  readonly at: Date;
  readonly actor: string;
  readonly actor_name: string | null;
  readonly epoch: string;
  readonly data: Record<string, unknown>;
};

export async function listEvents(tx: Tx, jobId: string, after: number, limit: number): Promise<JobEvent[]> {
  const { rows } = await tx.query<EventRow>(
    `select e.seq, e.kind, e.at, e.actor, coalesce(u.name, n.name) as actor_name, e.epoch, e.data
       from app.job_event e
       left join app."user" u on u.organisation_id = e.organisation_id and u.id = e.actor
       left join app.node n on n.organisation_id = e.organisation_id and n.id = e.actor
      where e.job_id = $1 and e.seq > $2 order by e.seq limit $3`,
    [jobId, after, limit],
  );
  return rows.map(({ actor_name: actorName, ...row }) => ({ ...row, actorName, at: row.at.toISOString() }));
}

/** The lane of a profile in a project, made on first use. Equal ones share it. */
async function internLane(
  tx: Tx,
  lane: { organisationId: OrganisationId; id: LaneId; requirement: Requirements; projectId: ProjectId | null },
): Promise<LaneId> {
  const text = canonicalJson(lane.requirement);
  // Without a project it is what it was before lanes had one: controllers of then and now share those.
  const whose = lane.projectId === null ? "" : `\n${lane.projectId}`;
  const key = createHash("sha256")
    .update(text + whose)
    .digest();
  const find = "select id from app.lane where key = $1";
  const found = await tx.maybeOne<{ id: LaneId }>(find, [key]);
  if (found !== undefined) return found.id;
  await tx.query(
    `insert into app.lane (organisation_id, id, key, requirement, project_id) values ($1, $2, $3, $4, $5)
     on conflict (organisation_id, key) do nothing`,
    [lane.organisationId, lane.id, key, text, lane.projectId],
  );
  return (await tx.one<{ id: LaneId }>(find, [key])).id;
}

export type NewJob = {
  readonly organisationId: OrganisationId;
  readonly id: JobId;
  readonly laneId: LaneId;
  readonly actor: string;
  readonly submission: JobSubmission;
  /** The submission's requirements with those of its model. */
  readonly requirement: Requirements;
  readonly projectId: ProjectId | null;
};

/** A waiting job rises one step of priority in this time. */
const AGEING_STEP = "interval '60 seconds'";

const DEFAULT_RETRY = { maxAttempts: 3, onFailure: false };

export async function insertJob(tx: Tx, job: NewJob): Promise<void> {
  const { organisationId, id, submission } = job;
  const { requirement, projectId } = job;
  const laneId = await internLane(tx, { organisationId, id: job.laneId, requirement, projectId });
  const retry = submission.retry ?? DEFAULT_RETRY;
  await Promise.all([
    tx.query(
      `insert into app.job (organisation_id, id, lane_id, state, priority, max_attempts, retry_on_failure, run_at, project_id, turn)
       values ($1, $2, $3, case when $7::timestamptz > now() then 'scheduled' else 'queued' end, $4, $5, $6,
               case when $7::timestamptz > now() then $7::timestamptz end, $8,
               greatest($7::timestamptz, now()) - $4::smallint * ${AGEING_STEP})`,
      [
        organisationId,
        id,
        laneId,
        submission.priority ?? 0,
        retry.maxAttempts,
        retry.onFailure,
        submission.notBefore ?? null,
        projectId,
      ],
    ),
    tx.query(
      `insert into app.job_body (organisation_id, job_id, command, environment, working_directory, input, labels, time_limit_ms)
       values ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [
        organisationId,
        id,
        JSON.stringify(submission.command),
        JSON.stringify(submission.environment ?? {}),
        submission.workingDirectory ?? null,
        submission.input === undefined ? null : JSON.stringify(submission.input),
        JSON.stringify(submission.labels ?? {}),
        submission.timeLimitMs ?? null,
      ],
    ),
    tx.query(
      "insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch) values ($1, $2, 1, 'created', $3, 0)",
      [organisationId, id, job.actor],
    ),
  ]);
}

export type KeyUse =
  | { readonly kind: "fresh" }
  | { readonly kind: "repeat"; readonly jobId: JobId }
  | { readonly kind: "conflict" };

export type KeyClaim = {
  readonly organisationId: OrganisationId;
  readonly route: string;
  readonly key: string;
  readonly body: unknown;
  readonly jobId: JobId;
};

/** Takes an idempotency key for a new job; whoever comes second waits for the first and then sees its job. */
export async function takeKey(tx: Tx, claim: KeyClaim): Promise<KeyUse> {
  const fingerprint = createHash("sha256").update(canonicalJson(claim.body)).digest();
  const { count } = await tx.query(
    `insert into app.idempotency (organisation_id, route, key, fingerprint, job_id) values ($1, $2, $3, $4, $5)
     on conflict (organisation_id, route, key) do nothing`,
    [claim.organisationId, claim.route, claim.key, fingerprint, claim.jobId],
  );
  if (count === 1) return { kind: "fresh" };
  const row = await tx.one<{ job_id: JobId; is_same: boolean }>(
    "select job_id, fingerprint = $3 as is_same from app.idempotency where route = $1 and key = $2",
    [claim.route, claim.key, fingerprint],
  );
  return row.is_same ? { kind: "repeat", jobId: row.job_id } : { kind: "conflict" };
}

/** True when the cancel was taken: at once for a job that waits, as a request for one that a node holds. */
export async function cancelJob(tx: Tx, organisationId: OrganisationId, id: string, actor: string): Promise<boolean> {
  const { rows } = await tx.query<{ seq: number; state: JobState; epoch: string }>(
    `update app.job set cancel_requested = true, seq = seq + 1,
            state = case when lease_until is null then 'cancelled' else state end,
            epoch = case when lease_until is null then epoch + 1 else epoch end,
            run_at = case when lease_until is null then null else run_at end,
            finished_at = case when lease_until is null then now() end
      where id = $1 and state = any($2) and (not cancel_requested or lease_until is null)
     returning seq, state, epoch`,
    [id, jobCan.cancel.states],
  );
  const row = rows[0];
  if (row === undefined) return false;
  const kind = finalStates.includes(row.state) ? "cancelled" : "cancel_requested";
  await tx.query(
    "insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch) values ($1, $2, $3, $4, $5, $6)",
    [organisationId, id, row.seq, kind, actor, row.epoch],
  );
  return true;
}
