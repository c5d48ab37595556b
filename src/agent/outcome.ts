// SPDX-License-Identifier: Apache-2.0
// From what the launcher saw to what the controller is told. Pure. Rule: a process that ended before it was asked to stop was
// not stopped by us, whatever we were about to do.

import type { EndingReport, LeaseRef } from "../protocol/agent-schema.ts";
import type { Outcome, StopReason } from "../protocol/job.ts";
import { storableText } from "../std/json.ts";
import { type BreachedLimit, describeBreach, describeEnding, type Ending, signalName } from "../launcher/launcher.ts";

const MESSAGE_LENGTH_MAX = 1024;

/** How an attempt ended, as this node knows it. */
export type Seen = {
  readonly outcome: Outcome;
  /** Whether the stop that we asked for, if any, reached it. */
  readonly wasAsked: boolean;
  /** The limit that the shim saw passed. */
  readonly limit?: BreachedLimit;
  /** Wall clock. */
  readonly startedAtMs?: number;
  readonly endedAtMs?: number;
};

export function seen(ending: Ending): Seen {
  const outcome = outcomeOf(ending);
  if (ending.kind === "lost") return { outcome, wasAsked: true };
  if (ending.kind === "not-started") return { outcome, wasAsked: true, endedAtMs: ending.endedAtMs };
  const { startedAtMs, endedAtMs, limit } = ending;
  const wasAsked = ending.stopAsked || ending.killAsked;
  return { outcome, wasAsked, startedAtMs, endedAtMs, ...(limit === undefined ? {} : { limit }) };
}

/** The command never began, and trying again may help. */
export function notStarted(message: string): Seen {
  return { outcome: { kind: "not-started", message }, wasAsked: true };
}

function outcomeOf(ending: Ending): Outcome {
  switch (ending.kind) {
    case "exited":
      return { kind: "exited", exitCode: ending.code };
    case "signalled":
      return { kind: "signalled", signal: signalName(ending.signal).slice(0, 16) };
    case "exec-failed":
      return { kind: "exec-failed", message: describeEnding(ending) };
    case "not-started":
      return { kind: "not-started", message: "the command was never started" };
    case "lost":
      return { kind: "interrupted", message: "the node lost sight of it: whether it finished is not known" };
    default:
      return ending satisfies never;
  }
}

/** What a job left as its result, or why that was dropped. */
export type Result = { readonly result?: unknown; readonly problem?: string };

export function reportOf(lease: LeaseRef, end: Seen, stopReason: StopReason | undefined, found: Result): EndingReport {
  const { outcome } = end;
  const problem = found.problem ?? (end.limit === undefined ? undefined : passed(end.limit));
  const asked = stopReason !== undefined && end.wasAsked ? stopReason : null;
  return {
    ...lease,
    outcome: "message" in outcome ? { ...outcome, message: cut(outcome.message) } : outcome,
    stopped: end.limit === undefined ? asked : (LIMIT_STOPS[end.limit] ?? asked),
    startedAt: timeOf(end.startedAtMs),
    endedAt: timeOf(end.endedAtMs),
    ...(found.result === undefined ? {} : { result: found.result }),
    message: problem === undefined ? null : cut(problem),
  };
}

/** Those that the controller knows by name; of the others the signal and the message tell. */
const LIMIT_STOPS: { readonly [limit in BreachedLimit]?: StopReason } = {
  output: "output-limit",
  "wall-time": "time-limit",
};

function passed(limit: BreachedLimit): string {
  return `it passed its limit of ${describeBreach(limit)}`;
}

function timeOf(ms: number | undefined): string | null {
  return ms === undefined || ms <= 0 ? null : new Date(ms).toISOString();
}

function cut(text: string): string {
  return storableText(text.slice(0, MESSAGE_LENGTH_MAX / 2)).slice(0, MESSAGE_LENGTH_MAX);
}
