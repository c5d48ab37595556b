// SPDX-License-Identifier: Apache-2.0
// Jobs as people submit, follow and cancel them.

import Type from "typebox";
import { exact, id, page } from "../common-schema.ts";
import { cursor, job, jobDetail, jobEvent, jobListQuery, jobSubmission, logPage } from "../job-schema.ts";
import { PAGE_MAX } from "../limits.ts";
import { jobWhy } from "../placement-schema.ts";
import { defineRoute } from "../route.ts";
import { read, write } from "./access.ts";

const jobParams = exact({ jobId: id("job") });
const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_MAX }));

export const jobRoutes = {
  jobSubmit: defineRoute({
    method: "POST",
    path: "/v1/jobs",
    summary: "Submit a job",
    access: write,
    body: jobSubmission,
    status: 201,
    reply: job,
    idempotent: true,
    errors: ["idempotency_conflict", "not_found", "conflict"],
  }),
  jobList: defineRoute({
    method: "GET",
    path: "/v1/jobs",
    summary: "Jobs, newest first",
    access: read,
    query: jobListQuery,
    reply: page(job),
    errors: [],
  }),
  jobShow: defineRoute({
    method: "GET",
    path: "/v1/jobs/:jobId",
    summary: "One job with its input and result",
    access: read,
    params: jobParams,
    reply: jobDetail,
    errors: ["not_found"],
  }),
  jobWhy: defineRoute({
    method: "GET",
    path: "/v1/jobs/:jobId/why",
    summary: "Why a job is where it is: the verdict of each node, its position, who holds what it waits for",
    access: read,
    params: jobParams,
    reply: jobWhy,
    errors: ["not_found"],
  }),
  jobCancel: defineRoute({
    method: "POST",
    path: "/v1/jobs/:jobId/cancel",
    summary: "Cancel: at once when it waits, with the next renewal when it runs",
    access: write,
    params: jobParams,
    reply: job,
    errors: ["not_found", "conflict"],
  }),
  jobEvents: defineRoute({
    method: "GET",
    path: "/v1/jobs/:jobId/events",
    summary: "The ledger of one job, oldest first",
    access: read,
    params: jobParams,
    query: exact({ after: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647 })), limit }),
    reply: exact({ events: Type.Array(jobEvent) }),
    errors: ["not_found"],
  }),
  jobLogs: defineRoute({
    method: "GET",
    path: "/v1/jobs/:jobId/logs",
    summary: "Output of all attempts, in the order it arrived",
    access: read,
    params: jobParams,
    query: exact({ after: Type.Optional(cursor), limit }),
    reply: logPage,
    errors: ["not_found"],
  }),
  jobLogTail: defineRoute({
    method: "GET",
    path: "/v1/jobs/:jobId/logs/tail",
    summary: "The same, live, until the job has ended",
    access: read,
    params: jobParams,
    query: exact({ after: Type.Optional(cursor) }),
    reply: logPage,
    stream: true,
    errors: ["not_found"],
  }),
} as const;
