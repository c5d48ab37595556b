// SPDX-License-Identifier: Apache-2.0
// The first real job: SHA-256 and word count of the files of this checkout, its log streamed live, its result shown.

import path from "node:path";
import type { Client } from "../client/client.ts";
import type { JobDetail } from "../protocol/job-schema.ts";
import type { Steps } from "./steps.ts";

export type FirstJob = {
  readonly client: Client;
  readonly steps: Steps;
  readonly signal: AbortSignal;
  readonly directory: string;
};

/** Returns 0 when the job succeeded, 1 when not. An abort ends the wait; the stopping agent then releases the job. */
export async function runFirstJob({ client, steps, signal, directory }: FirstJob): Promise<number> {
  const script = path.join(directory, "examples", "count-files.mjs");
  const job = await steps.run("first job", () =>
    client.call("jobSubmit", {
      body: { command: [process.execPath, script, directory], labels: { purpose: "first-job" } },
    }),
  );
  steps.note(`${job.id}: SHA-256 and word count of the files of this checkout`);
  let line = "";
  try {
    for await (const page of client.stream("jobLogTail", { params: { jobId: job.id } }, { signal })) {
      for (const chunk of page.chunks) {
        const lines = (line + chunk.text).split("\n");
        line = lines.pop() ?? "";
        for (const text of lines) steps.quote(text);
      }
    }
  } catch (error) {
    if (signal.aborted) return 1;
    throw error;
  }
  if (line !== "") steps.quote(line);
  const ended = await steps.run("result", () => client.call("jobShow", { params: { jobId: job.id } }));
  steps.note(resultText(ended));
  return ended.state === "succeeded" ? 0 : 1;
}

function resultText(job: JobDetail): string {
  if (job.state !== "succeeded") return `${job.state}: ${job.message ?? job.reason ?? "no reason given"}`;
  return `${job.state} on ${job.nodeName ?? "?"}, attempt ${job.attempt}: ${JSON.stringify(job.result)}`;
}
