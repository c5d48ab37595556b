// SPDX-License-Identifier: Apache-2.0
// Queue attempts in the record, pure: an attempt (job, epoch) is entered once, before its gate opens, and leaves when the
// controller has acknowledged its ending. No two attempts of one job at once.

import { ATTEMPTS_MAX, type AttemptEntry, type BoundaryRecord, type StoredIdentity } from "./record.ts";

export type AttemptRef = { readonly jobId: string; readonly epoch: string };

export type AttemptStart = AttemptRef & { readonly launchId: string; readonly identity: StoredIdentity };

/** An expected outcome, never a throw. */
export type Admitted =
  | { readonly kind: "admitted"; readonly record: BoundaryRecord }
  | {
      readonly kind: "refused";
      readonly reason: "already-started" | "older-epoch" | "other-attempt-runs" | "full";
      readonly text: string;
    };

function isOf(ref: AttemptRef, entry: AttemptEntry): boolean {
  return entry.jobId === ref.jobId && entry.epoch === BigInt(ref.epoch);
}

export function findAttempt(record: BoundaryRecord, ref: AttemptRef): AttemptEntry | undefined {
  return record.attempts.find((entry) => isOf(ref, entry));
}

/** For the record's change: computed from the live record under the tenant's lock, never from an older one. */
export function admitAttempt(record: BoundaryRecord, start: AttemptStart): Admitted {
  const refused = (reason: Extract<Admitted, { kind: "refused" }>["reason"], text: string): Admitted => ({
    kind: "refused",
    reason,
    text,
  });
  const ofJob = record.attempts.filter((entry) => entry.jobId === start.jobId);
  if (ofJob.some((entry) => isOf(start, entry)))
    return refused("already-started", "this attempt was started on this node before");
  if (ofJob.some((entry) => entry.epoch > BigInt(start.epoch)))
    return refused("older-epoch", "a later attempt of this job was started on this node before");
  if (ofJob.some((entry) => entry.stage === "released"))
    return refused("other-attempt-runs", "an earlier attempt of this job has not ended on this node");
  if (record.attempts.length >= ATTEMPTS_MAX)
    return refused("full", `this node holds ${ATTEMPTS_MAX} attempts whose endings are not acknowledged`);
  const { jobId, epoch, launchId, identity } = start;
  const entry: AttemptEntry = { jobId, epoch: BigInt(epoch), launchId, identity, stage: "released", outcome: "" };
  return { kind: "admitted", record: { ...record, attempts: [...record.attempts, entry] } };
}

/** The ending is known. Safe to lose: the exit file holds it. A terminal stage changes only from interrupted to the real ending. */
export function endAttempt(record: BoundaryRecord, ref: AttemptRef, outcome: string): BoundaryRecord {
  const isChanged = record.attempts.some(
    (entry) =>
      isOf(ref, entry) &&
      (entry.stage === "released" || (entry.outcome === "interrupted" && outcome !== "interrupted")),
  );
  if (!isChanged) return record;
  const attempts = record.attempts.map((entry) =>
    isOf(ref, entry) ? { ...entry, stage: "ended" as const, outcome } : entry,
  );
  return { ...record, attempts };
}

/** The controller has acknowledged the ending. */
export function closeAttempt(record: BoundaryRecord, ref: AttemptRef): BoundaryRecord {
  const attempts = record.attempts.filter((entry) => !isOf(ref, entry));
  return attempts.length === record.attempts.length ? record : { ...record, attempts };
}
