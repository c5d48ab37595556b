// SPDX-License-Identifier: Apache-2.0
// Returns the leases of a node that lost the right to them: it was retired, or its agent began anew without them.

import { afterLoss, type Settled } from "../../protocol/job.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId, OrganisationId } from "../../std/ids.ts";
import type { Context } from "../context.ts";
import { type Leased, moveJobs, moveOf } from "./move-store.ts";

type HeldRow = {
  readonly organisation_id: OrganisationId;
  readonly id: JobId;
  readonly state: "leased" | "running";
  readonly epoch: string;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly retry_on_failure: boolean;
  readonly unstarted: number;
  readonly cancel_requested: boolean;
};

export type Returned = {
  readonly nodeId: string;
  readonly actor: string;
  readonly why: string;
  /** Only leases that are not of this session; all when absent. */
  readonly exceptSession?: string;
};

/** Jobs that had started use up an attempt, as after a lost lease; claimed ones do not. */
export async function returnLeases(tx: Tx, context: Context, returned: Returned): Promise<void> {
  const { rows } = await tx.query<HeldRow>(
    `select organisation_id, id, state, epoch, attempt, max_attempts, retry_on_failure, unstarted, cancel_requested from app.job
      where node_id = $1 and lease_until is not null and session_id is distinct from $2 for update`,
    [returned.nodeId, returned.exceptSession ?? null],
  );
  const moves = rows.map((row) => {
    const job: Leased = {
      organisationId: row.organisation_id,
      jobId: row.id,
      epoch: row.epoch,
      attempt: row.attempt,
      unstarted: row.unstarted,
    };
    const retry = { maxAttempts: row.max_attempts, onFailure: row.retry_on_failure };
    const lost: Settled =
      row.state === "running" ? afterLoss(row.attempt, retry) : { state: "queued", used: false, reason: "not-started" };
    const settled: Settled = row.cancel_requested ? { state: "cancelled" } : lost;
    const eventKind = settled.state === "queued" ? "returned" : settled.state;
    return moveOf(context, job, settled, {
      eventKind,
      isFenced: true,
      outcome: { kind: "lost" },
      eventData: { why: returned.why, node: returned.nodeId },
    });
  });
  await moveJobs(tx, moves, returned.actor);
  for (const row of rows) context.wakeups.wake(`job:${row.id}`);
}
