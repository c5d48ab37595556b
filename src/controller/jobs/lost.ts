// SPDX-License-Identifier: Apache-2.0
// What becomes of a lease that ended without a word from its holder: the same rule for the sweep, a new session, a retirement.

import { afterLoss, type Settled, UNSTARTED_RETURNS_MAX } from "../../protocol/job.ts";
import type { JobId, OrganisationId } from "../../std/ids.ts";
import type { Context } from "../context.ts";
import { type Leased, type Move, moveOf } from "./move-store.ts";

export type LostRow = {
  readonly organisation_id: OrganisationId;
  readonly id: JobId;
  readonly state: "leased" | "running";
  readonly epoch: string;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly retry_on_failure: boolean;
  readonly unstarted: number;
  readonly cancel_requested: boolean;
  readonly node_id: string;
};

export const LOST_COLUMNS =
  "organisation_id, id, state, epoch, attempt, max_attempts, retry_on_failure, unstarted, cancel_requested, node_id";

/** A job that had started uses its attempt; a claim that never did uses none, but only so often: then it counts as one. */
export function moveLost(
  context: Context,
  row: LostRow,
  how: { readonly eventKind: string; readonly why: string },
): Move {
  const hadStarted = row.state === "running";
  const countsAnyway = !hadStarted && row.unstarted + 1 >= UNSTARTED_RETURNS_MAX;
  const attempt = row.attempt + (countsAnyway ? 1 : 0);
  const job: Leased = {
    organisationId: row.organisation_id,
    jobId: row.id,
    epoch: row.epoch,
    attempt,
    unstarted: countsAnyway ? 0 : row.unstarted + 1,
  };
  const retry = { maxAttempts: row.max_attempts, onFailure: row.retry_on_failure };
  let settled: Settled =
    hadStarted || countsAnyway ? afterLoss(attempt, retry) : { state: "queued", used: false, reason: "not-started" };
  if (row.cancel_requested) settled = { state: "cancelled" };
  return moveOf(context, job, settled, {
    eventKind: how.eventKind,
    isFenced: true,
    outcome: { kind: "lost" },
    eventData: { why: how.why, node: row.node_id, started: hadStarted },
  });
}
