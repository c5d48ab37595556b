// SPDX-License-Identifier: Apache-2.0
// The life of a job, pure. The same rules serve the API, the command line and buttons.
//
//   scheduled ──time──► queued ──claim──► leased ──started──► running ──► succeeded | failed | cancelled
//       ▲                 ▲                  │ not started        │ lease ran out, released, or failed and retried
//       └──── backoff ────┴──────────────────┴────────────────────┘            attempts used up ──► dead
//
// Rule: a lease time exists exactly in leased and running; the epoch rises on every arrow that starts or ends a lease.

export const jobStates = [
  "scheduled",
  "queued",
  "leased",
  "running",
  "succeeded",
  "failed",
  "cancelled",
  "dead",
] as const;
export type JobState = (typeof jobStates)[number];

export const finalStates: readonly JobState[] = ["succeeded", "failed", "cancelled", "dead"];

export function isFinal(state: JobState): boolean {
  return finalStates.includes(state);
}

/** What a person may do, and in which states; elsewhere it is shown as not possible, with the reason. */
export const jobCan = {
  cancel: { states: ["scheduled", "queued", "leased", "running"], otherwise: "the job has already ended" },
} as const satisfies Record<string, { readonly states: readonly JobState[]; readonly otherwise: string }>;

/** How the process of an attempt ended, as its node saw it. */
export type Outcome =
  | { readonly kind: "exited"; readonly exitCode: number }
  | { readonly kind: "signalled"; readonly signal: string }
  /** The command could not be executed at all: errno of execve(2). */
  | { readonly kind: "exec-failed"; readonly message: string }
  /** The node lost sight of it (power cut, killed shim); whether it finished is unknown. */
  | { readonly kind: "interrupted"; readonly message: string }
  /** Claimed, but the command never began. */
  | { readonly kind: "not-started"; readonly message: string };

/** Why the node itself ended the process, if it did. */
export type StopReason = "cancel" | "time-limit" | "output-limit" | "release";

export type FailReason = "exit-code" | "signal" | "exec-failed" | "time-limit" | "output-limit" | "lost";

export type Retry = {
  /** How often the job may start in all, a lost node included; 1 to 25. */
  readonly maxAttempts: number;
  /** Whether a non-zero exit is tried again too, not just a lost node. */
  readonly onFailure: boolean;
};

export type Settled =
  | { readonly state: "succeeded" }
  | { readonly state: "failed"; readonly reason: FailReason }
  | { readonly state: "dead"; readonly reason: FailReason }
  | { readonly state: "cancelled" }
  /** Back to the queue; used says whether the attempt counts. */
  | { readonly state: "queued"; readonly used: boolean; readonly reason: FailReason | "not-started" | "released" };

export type Ending = {
  readonly outcome: Outcome;
  readonly stopped: StopReason | undefined;
  readonly cancelRequested: boolean;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  readonly retry: Retry;
};

/** Where an ending takes the job. A success is a success even when a cancel came too late to matter. */
export function settle(ending: Ending): Settled {
  const { outcome, stopped, cancelRequested } = ending;
  if (outcome.kind === "exited" && outcome.exitCode === 0 && stopped !== "release") return { state: "succeeded" };
  if (cancelRequested) return { state: "cancelled" };
  if (stopped === "release") return { state: "queued", used: false, reason: "released" };
  if (outcome.kind === "not-started") return { state: "queued", used: false, reason: "not-started" };
  if (outcome.kind === "interrupted") return afterLoss(ending.attempt, ending.retry);
  const reason = failReason(outcome, stopped);
  if (!ending.retry.onFailure || reason === "exec-failed") return { state: "failed", reason };
  return ending.attempt < ending.retry.maxAttempts
    ? { state: "queued", used: true, reason }
    : { state: "dead", reason };
}

/** Where a lease that ran out takes a job that had started. */
export function afterLoss(attempt: number, retry: Retry): Settled {
  return attempt < retry.maxAttempts
    ? { state: "queued", used: true, reason: "lost" }
    : { state: "dead", reason: "lost" };
}

function failReason(outcome: Outcome, stopped: StopReason | undefined): FailReason {
  if (stopped === "time-limit" || stopped === "output-limit") return stopped;
  if (outcome.kind === "exited") return "exit-code";
  return outcome.kind === "signalled" ? "signal" : "exec-failed";
}

/** A claim whose node never said "started" does not use an attempt, but only this often: then it counts as one. */
export const UNSTARTED_RETURNS_MAX = 5;
