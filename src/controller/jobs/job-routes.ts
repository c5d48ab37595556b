// SPDX-License-Identifier: Apache-2.0
// What people do with jobs: submit, look, follow, cancel.

import { Failure, type Fault } from "../../std/errors.ts";
import type { Tx } from "../../db/pool.ts";
import { jobCan } from "../../protocol/job.ts";
import type { Job, JobSubmission, LogPage } from "../../protocol/job-schema.ts";
import { JOB_INPUT_BYTES_MAX, PAGE_MAX } from "../../protocol/limits.ts";
import { needFaults, type Needs, type Requirements, requirementWith } from "../../protocol/placement.ts";
import { actorOf } from "../access/credential.ts";
import { requireValid } from "../access/credential-store.ts";
import type { Context } from "../context.ts";
import type { Call, Handlers } from "../http/reply.ts";
import { findModelByName } from "../models/model-store.ts";
import { findProjectId } from "../projects/project-store.ts";
import { cancelJob, findJob, findJobDetail, insertJob, listEvents, listJobs, takeKey } from "./job-store.ts";
import { readLog } from "./log-store.ts";
import { explainJob } from "./why-store.ts";

type Names = "jobSubmit" | "jobList" | "jobShow" | "jobWhy" | "jobCancel" | "jobEvents" | "jobLogs" | "jobLogTail";

export function jobRoutes(context: Context): Handlers<Names> {
  const { db } = context;
  return {
    jobSubmit: (call) => submit(context, call),
    jobList: ({ caller, query }) => db.tenant(caller, (tx) => listJobs(tx, query)),
    jobShow: async ({ caller, params }) =>
      (await db.tenant(caller, (tx) => findJobDetail(tx, params.jobId))) ?? notFound(params.jobId),
    jobWhy: async ({ caller, params: { jobId } }) => {
      const { organisationId } = caller;
      const { heartbeatMs } = context.config;
      const why = await db.tenant(caller, (tx) => explainJob(tx, { organisationId, jobId, heartbeatMs }));
      return why ?? notFound(jobId);
    },
    jobCancel: (call) => cancel(context, call),
    jobEvents: ({ caller, params, query }) =>
      db.tenant(caller, async (tx) => {
        const events = await listEvents(tx, params.jobId, query.after ?? 0, query.limit ?? PAGE_MAX);
        if (events.length === 0 && (await findJob(tx, params.jobId)) === undefined) notFound(params.jobId);
        return { events };
      }),
    jobLogs: async ({ caller, params, query }) =>
      (await db.tenant(caller, (tx) => readLog(tx, params.jobId, query.after, query.limit))) ?? notFound(params.jobId),
    jobLogTail: (call) => Promise.resolve(tail(context, call)),
  };
}

function notFound(jobId: string): never {
  throw new Failure("not_found", `there is no job ${jobId}; see: holdfast job list`);
}

async function submit(
  context: Context,
  { caller, body, idempotencyKey }: Call<"jobSubmit">,
): Promise<Job | { readonly repeated: Job }> {
  if (body.command[0] === "") {
    throw new Failure("invalid_request", "/command/0 is empty", {
      details: [{ place: "/command/0", problem: "is empty: name a program" }],
    });
  }
  if (body.input !== undefined && Buffer.byteLength(JSON.stringify(body.input)) > JOB_INPUT_BYTES_MAX) {
    const problem = `is larger than ${JOB_INPUT_BYTES_MAX} bytes as JSON: pass a path or an address instead`;
    throw new Failure("invalid_request", `/input ${problem}`, { details: [{ place: "/input", problem }] });
  }
  const { organisationId } = caller;
  const id = context.ids("job");
  const answer = await context.db.tenant(caller, async (tx) => {
    if (idempotencyKey !== undefined) {
      const use = await takeKey(tx, { organisationId, route: "jobSubmit", key: idempotencyKey, body, jobId: id });
      if (use.kind === "conflict") {
        throw new Failure("idempotency_conflict", "this idempotency key was used for another request: use a new key");
      }
      if (use.kind === "repeat") return { repeated: (await findJob(tx, use.jobId)) ?? notFound(use.jobId) };
    }
    const { requirement, projectId } = await resolve(tx, body);
    const job = { organisationId, id, laneId: context.ids("lane"), actor: actorOf(caller), submission: body };
    await insertJob(tx, { ...job, requirement, projectId });
    return (await findJob(tx, id)) ?? notFound(id);
  });
  context.wakeups.wake(`work:${organisationId}`);
  context.wakeups.wake(`changes:${organisationId}`);
  return answer;
}

/** Names of registered things become what they stand for; the needs of a model fill the profile. All faults at once. */
async function resolve(tx: Tx, { requires = {}, project }: JobSubmission) {
  const model = requires.model === undefined ? undefined : await findModelByName(tx, requires.model);
  const projectId = project === undefined ? undefined : await findProjectId(tx, project);
  const details: Fault[] = [];
  if (requires.model !== undefined && model === undefined)
    details.push({ place: "/requires/model", problem: `no model named ${requires.model} is registered` });
  if (project !== undefined && projectId === undefined)
    details.push({ place: "/project", problem: `no project named ${project} is registered` });
  const requirement = model === undefined ? requires : requirementWith(requires, model.needs);
  if (requirement === undefined) details.push(contradiction(requires, model?.needs ?? {}));
  for (const { field, problem } of requirement === undefined ? [] : needFaults(requirement))
    details.push({ place: `/requires/${field}`, problem });
  const [first] = details;
  if (first !== undefined || requirement === undefined)
    throw new Failure("invalid_request", `${first?.place}: ${first?.problem}`, { details });
  return { requirement, projectId: projectId ?? null };
}

function contradiction({ model, arch, paths = [] }: Requirements, needs: Needs): Fault {
  return arch !== undefined && needs.arch !== undefined && arch !== needs.arch
    ? { place: "/requires/arch", problem: `asks for ${arch}, and the model ${model} needs ${needs.arch}` }
    : {
        place: "/requires/paths",
        problem: `allows ${paths.join(", ")}, and the model ${model} runs on ${(needs.paths ?? []).join(", ")}`,
      };
}

async function cancel(context: Context, { caller, params }: Call<"jobCancel">): Promise<Job> {
  const job = await context.db.tenant(caller, async (tx) => {
    const isTaken = await cancelJob(tx, caller.organisationId, params.jobId, actorOf(caller));
    const after = (await findJob(tx, params.jobId)) ?? notFound(params.jobId);
    // Asking twice is no fault; asking after the end is.
    if (!isTaken && !after.cancelRequested)
      throw new Failure("conflict", `${after.id} is ${after.state}: ${jobCan.cancel.otherwise}`);
    return after;
  });
  context.wakeups.wake(`job:${params.jobId}`);
  context.wakeups.wake(`changes:${caller.organisationId}`);
  return job;
}

/** Pages of the log as they come, until the job has ended and all of it was sent. */
async function* tail(
  context: Context,
  { caller, params, query, signal }: Call<"jobLogTail">,
): AsyncGenerator<LogPage, void, undefined> {
  let after = query.after;
  let isFirst = true;
  while (!signal.aborted) {
    using ticket = context.wakeups.ticket(`job:${params.jobId}`);
    const read = context.db.tenant(caller, async (tx) => {
      await requireValid(tx, caller.credentialId);
      return readLog(tx, params.jobId, after);
    });
    const page = (await read) ?? notFound(params.jobId);
    if (page.chunks.length > 0 || page.ended || isFirst) yield page;
    isFirst = false;
    if (page.ended) return;
    after = page.chunks.at(-1)?.cursor ?? after;
    if (page.chunks.length < PAGE_MAX) await ticket.wait(context.config.pollMs, signal);
  }
}
