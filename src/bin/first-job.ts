// SPDX-License-Identifier: Apache-2.0
// The first real job: SHA-256 and word count of the files of this checkout, its log streamed live, its result shown.

import path from "node:path";
import type { Client } from "../client/client.ts";
import type { JobDetail } from "../protocol/job-schema.ts";
import type { Clock } from "../std/clock.ts";
import type { Steps } from "./steps.ts";

export type FirstJob = {
  readonly client: Client;
  readonly steps: Steps;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly directory: string;
  /** Waits as long as it takes for a slot; else a busy node is left alone. */
  readonly isPatient: boolean;
};

/** How long the first job waits for a slot that earlier jobs hold. */
const SLOT_WITHIN_MS = 5_000;
const LOOK_MS = 250;

/** Returns 0 when the job succeeded, 1 when not. A job that has not begun when this ends is cancelled, so that none pile up. */
export async function runFirstJob(options: FirstJob): Promise<number> {
  const { client, steps, signal, directory } = options;
  const script = path.join(directory, "examples", "count-files.mjs");
  const job = await steps.run("submitted", () =>
    client.call("jobSubmit", {
      body: { command: [process.execPath, script, directory], labels: { purpose: "first-job" }, priority: 100 },
    }),
  );
  steps.note(`first job ${job.id}: SHA-256 and word count of the files of this checkout`);
  const stop = new AbortController();
  const watching = watchSlot(options, job.id, stop);
  const isDone = await quoteLog(options, job.id, AbortSignal.any([signal, stop.signal]));
  stop.abort();
  await watching;
  if (!isDone) {
    await client.call("jobCancel", { params: { jobId: job.id } }).catch(() => undefined);
    return 1;
  }
  const ended = await steps.run("result", () => client.call("jobShow", { params: { jobId: job.id } }));
  steps.note(resultText(ended));
  return ended.state === "succeeded" ? 0 : 1;
}

/** True when the job has ended and all of its output was shown; false when it was stopped before. */
async function quoteLog({ client, steps }: FirstJob, jobId: string, signal: AbortSignal): Promise<boolean> {
  let line = "";
  try {
    for await (const page of client.stream("jobLogTail", { params: { jobId } }, { signal })) {
      for (const chunk of page.chunks) {
        const lines = (line + chunk.text).split("\n");
        line = lines.pop() ?? "";
        for (const text of lines) steps.quote(text);
      }
      if (page.ended) break;
    }
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
  if (line !== "") steps.quote(line);
  return !signal.aborted;
}

/** Says that the job waits for a slot; stops the wait when it is not patient. */
async function watchSlot(
  { client, steps, clock, isPatient }: FirstJob,
  jobId: string,
  stop: AbortController,
): Promise<void> {
  const until = clock.monotonicMs() + SLOT_WITHIN_MS;
  while (!stop.signal.aborted) {
    await clock.sleep(LOOK_MS, stop.signal);
    const seen = await client.call("jobShow", { params: { jobId } }, { signal: stop.signal }).catch(() => undefined);
    if (seen === undefined || (seen.state !== "queued" && seen.state !== "leased")) return;
    if (clock.monotonicMs() < until) continue;
    steps.line(
      `    every slot of this machine is busy with earlier jobs: ${isPatient ? "waiting for one" : "not waiting for one"}`,
    );
    if (!isPatient) stop.abort();
    return;
  }
}

function resultText(job: JobDetail): string {
  if (job.state !== "succeeded") return `${job.state}: ${job.message ?? job.reason ?? "no reason given"}`;
  return `${job.state} on ${job.nodeName ?? "?"}, attempt ${job.attempt}: ${JSON.stringify(job.result)}`;
}
