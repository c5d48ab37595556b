// SPDX-License-Identifier: Apache-2.0
// Takes a node's report of how an attempt ended: decides by the pure rules, under the job's row lock, fenced by the epoch.

import type { EndingReport, Verdict } from "../../protocol/agent-schema.ts";
import { type Outcome, settle, type Settled, UNSTARTED_RETURNS_MAX } from "../../protocol/job.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId } from "../../std/ids.ts";
import { storableText } from "../../std/json.ts";
import type { Context } from "../context.ts";
import { explain, type HeldJob, type Holder, lockHeld, writeResult } from "./lease-store.ts";
import { moveJobs, moveOf } from "./move-store.ts";

export async function endAttempt(tx: Tx, context: Context, holder: Holder, report: EndingReport): Promise<Verdict> {
  const lease = { jobId: report.jobId, epoch: report.epoch };
  const held = await lockHeld(tx, holder, lease);
  if (held === undefined) {
    const [verdict] = await explain(tx, holder, [lease]);
    return verdict ?? { ...lease, verdict: "unknown" };
  }
  const { settled, attempt, unstarted } = decide(held, report);
  const job = {
    organisationId: holder.organisationId,
    jobId: report.jobId as JobId,
    epoch: report.epoch,
    attempt,
    unstarted,
  };
  const outcome = safeOutcome(report.outcome);
  const move = moveOf(context, job, settled, {
    ...(settled.state === "queued" && !settled.used
      ? { eventKind: settled.reason === "released" ? "released" : "returned" }
      : {}),
    exitCode: outcome.kind === "exited" ? outcome.exitCode : null,
    isFenced: false,
    outcome: { ...outcome, stopped: report.stopped, startedAt: report.startedAt, endedAt: report.endedAt },
    eventData: { outcome, ...(report.stopped === null ? {} : { stopped: report.stopped }) },
  });
  await moveJobs(tx, [move], holder.nodeId);
  if (settled.state !== "queued") await writeResult(tx, report.jobId, report.result, messageFor(report, outcome));
  return { ...lease, verdict: "done" };
}

type Decided = { readonly settled: Settled; readonly attempt: number; readonly unstarted: number };

function decide(held: HeldJob, report: EndingReport): Decided {
  const outcome = report.outcome;
  // An attempt that ended before its start was reported has been used, whatever became of that report.
  const ran = held.state === "running" || outcome.kind !== "not-started";
  const begun = held.attempt + (ran && held.state === "leased" ? 1 : 0);
  const settled = settle({
    outcome,
    stopped: report.stopped ?? undefined,
    cancelRequested: held.cancelRequested,
    attempt: begun,
    retry: held.retry,
  });
  if (settled.state !== "queued" || settled.used) return { settled, attempt: begun, unstarted: 0 };
  // A release, and a start whose command never began, give the attempt back: the job itself did nothing wrong.
  const attempt = held.attempt - (held.state === "running" ? 1 : 0);
  if (settled.reason === "released") return { settled, attempt, unstarted: 0 };
  if (held.unstarted + 1 < UNSTARTED_RETURNS_MAX) return { settled, attempt, unstarted: held.unstarted + 1 };
  const counted = attempt + 1;
  const spent: Settled =
    counted < held.retry.maxAttempts
      ? { state: "queued", used: true, reason: "lost" }
      : { state: "dead", reason: "lost" };
  return { settled: spent, attempt: counted, unstarted: 0 };
}

/** Text of a process may hold what PostgreSQL cannot; it is kept visibly escaped and never keeps a job from ending. */
function safeOutcome(outcome: Outcome): Outcome {
  return "message" in outcome ? { ...outcome, message: storableText(outcome.message) } : outcome;
}

function messageFor(report: EndingReport, outcome: Outcome): string | null {
  const texts = [
    report.message,
    "message" in outcome ? outcome.message : null,
    outcome.kind === "signalled" ? `ended by ${outcome.signal}` : null,
  ];
  const said = texts.filter((text) => text !== null && text !== "");
  return said.length === 0 ? null : storableText(said.join("; "));
}
