// SPDX-License-Identifier: Apache-2.0
// What crosses HTTP about jobs, between people and the controller.

import Type, { type Static } from "typebox";
import { counter, exact, id, name, nullable, time } from "./common-schema.ts";
import { jobStates } from "./job.ts";
import {
  ARGUMENT_LENGTH_MAX,
  ARGUMENTS_MAX,
  ENVIRONMENT_MAX,
  JOB_SEARCH_MAX,
  LABELS_MAX,
  PAGE_DEFAULT,
  PAGE_MAX,
} from "./limits.ts";
import { requirements } from "./placement-schema.ts";

export const jobState = Type.Enum([...jobStates]);

export const retry = exact({
  maxAttempts: Type.Integer({ minimum: 1, maximum: 25, description: "starts in all, a lost node included" }),
  onFailure: Type.Boolean({ description: "whether a non-zero exit is tried again too" }),
});

const command = Type.Array(Type.String({ maxLength: ARGUMENT_LENGTH_MAX }), {
  minItems: 1,
  maxItems: ARGUMENTS_MAX,
  description: "the program and its arguments; no shell is involved",
});

const environment = Type.Record(
  Type.String({ pattern: "^(?!HOLDFAST_)[A-Za-z_][A-Za-z0-9_]{0,127}$" }),
  Type.String({ maxLength: ARGUMENT_LENGTH_MAX }),
  {
    maxProperties: ENVIRONMENT_MAX,
    additionalProperties: false,
    description: "not a place for secrets: people who may read jobs see it",
  },
);

const workingDirectory = Type.String({
  pattern: "^/",
  maxLength: 4096,
  description: "absolute; default: a directory of the attempt's own",
});

const timeLimitMs = Type.Integer({ minimum: 1, maximum: 31_536_000_000, description: "wall time of one attempt" });

const labels = Type.Record(
  Type.String({ pattern: "^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$" }),
  Type.String({ maxLength: 256 }),
  {
    maxProperties: LABELS_MAX,
    additionalProperties: false,
  },
);

const priority = Type.Integer({ minimum: -100, maximum: 100, description: "higher runs first" });

export const jobSubmission = exact({
  command,
  environment: Type.Optional(environment),
  workingDirectory: Type.Optional(workingDirectory),
  input: Type.Optional(
    Type.Unknown({ description: "any JSON up to 256 KiB; the job finds it in the file HOLDFAST_INPUT" }),
  ),
  requires: Type.Optional(requirements),
  priority: Type.Optional(priority),
  notBefore: Type.Optional(time),
  timeLimitMs: Type.Optional(timeLimitMs),
  retry: Type.Optional(retry),
  labels: Type.Optional(labels),
  project: Type.Optional(Type.Unsafe<string>({ ...name, description: "a registered project" })),
});
export type JobSubmission = Static<typeof jobSubmission>;

export const job = exact({
  id: id("job"),
  state: jobState,
  /** Why it is where it is: why it failed, why it went back, why nothing can run it. */
  reason: nullable(Type.String()),
  /** Set while queued and no node can run it. */
  blocked: nullable(Type.String()),
  command: Type.Array(Type.String()),
  priority: Type.Integer(),
  requires: requirements,
  project: nullable(name),
  attempt: Type.Integer({ minimum: 0, description: "attempts used so far" }),
  retry,
  epoch: counter,
  nodeId: nullable(id("node")),
  nodeName: nullable(Type.String()),
  cancelRequested: Type.Boolean(),
  exitCode: nullable(Type.Integer()),
  createdAt: time,
  notBefore: nullable(time),
  startedAt: nullable(time),
  finishedAt: nullable(time),
});
export type Job = Static<typeof job>;

export const jobDetail = exact({
  ...job.properties,
  environment: Type.Record(Type.String(), Type.String()),
  workingDirectory: nullable(Type.String()),
  input: Type.Unknown(),
  result: Type.Unknown(),
  /** What the node or the controller said about the end, beyond the reason. */
  message: nullable(Type.String()),
  timeLimitMs: nullable(Type.Integer()),
  labels: Type.Record(Type.String(), Type.String()),
});
export type JobDetail = Static<typeof jobDetail>;

export const jobEventKinds = [
  "created",
  "due",
  "claimed",
  "started",
  "returned",
  "released",
  "expired",
  "cancel_requested",
  "retried",
  "restored",
  "succeeded",
  "failed",
  "cancelled",
  "dead",
] as const;

export const jobEvent = exact({
  seq: Type.Integer({ minimum: 1, description: "gap-free per job" }),
  kind: Type.Enum([...jobEventKinds]),
  at: time,
  actor: Type.String({ description: "user_…, node_… or controller" }),
  actorName: nullable(Type.String()),
  epoch: counter,
  data: Type.Record(Type.String(), Type.Unknown()),
});
export type JobEvent = Static<typeof jobEvent>;

export const logStream = Type.Enum(["stdout", "stderr"]);

export const logChunk = exact({
  /** Pass as after to go on behind this chunk. */
  cursor: Type.String({ pattern: "^\\d{1,18}\\.\\d{1,18}$", description: "epoch.number" }),
  epoch: counter,
  stream: logStream,
  offset: Type.Integer({ minimum: 0 }),
  at: time,
  text: Type.String({ description: "UTF-8; bytes that are not are shown as U+FFFD" }),
  base64: Type.Optional(Type.String({ description: "the very bytes, when they are not UTF-8" })),
});
export type LogChunk = Static<typeof logChunk>;

export const logPage = exact({
  chunks: Type.Array(logChunk),
  /** Whether no chunk will follow: the job has ended and all is here. */
  ended: Type.Boolean(),
  /** Whether output beyond the limit was not kept. */
  cut: Type.Boolean(),
});
export type LogPage = Static<typeof logPage>;

export const cursor = Type.String({ pattern: "^\\d{1,18}\\.\\d{1,18}$", maxLength: 40 });

export const jobListQuery = exact({
  state: Type.Optional(jobState),
  nodeId: Type.Optional(id("node")),
  project: Type.Optional(name),
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: `in the id, the command and the labels, among the newest ${JOB_SEARCH_MAX} jobs that the other filters leave`,
    }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_MAX, description: `default ${PAGE_DEFAULT}` })),
  cursor: Type.Optional(id("job")),
});
