// SPDX-License-Identifier: Apache-2.0
// job run: submits, streams what the job writes, and ends with the job's own exit code. Ctrl-C cancels the job and waits for
// its end; a second Ctrl-C leaves it to itself. A broken stream is resumed behind the last chunk.

import os from "node:os";
import type { Client } from "../client/client.ts";
import type { Job, JobDetail, LogPage } from "../protocol/job-schema.ts";
import { LOG_CUT_NOTE } from "../protocol/access-schema.ts";
import { isFinal } from "../protocol/job.ts";
import { Failure, messageOf } from "../std/errors.ts";
import { commandLine, visible } from "./table.ts";
import { colours, type Terminal } from "./terminal.ts";

const RESUME_MS = 1_000;
const LOOK_MS = 1_000;
/** How long a controller may be away before run gives up following; the job goes on. */
const AWAY_MS_MAX = 120_000;

/** A job that was interrupted while it was submitted may be there: it is cancelled as soon as its id is known. */
export async function follow(terminal: Terminal, client: Client, submit: () => Promise<Job>): Promise<number> {
  const leave = new AbortController();
  let interrupts = 0;
  const submitted: { job?: Job } = {};
  using stack = new DisposableStack();
  const cancel = ({ id }: Job): void => {
    say(terminal, `cancelling ${id}; once more to leave it`);
    client
      .call("jobCancel", { params: { jobId: id } })
      .catch((error: unknown) => say(terminal, `could not cancel: ${messageOf(error)}`));
  };
  const interrupted = (): void => {
    interrupts++;
    if (interrupts > 1) leave.abort();
    else if (submitted.job === undefined) say(terminal, "cancelling it once it is submitted; once more to leave it");
    else cancel(submitted.job);
  };
  stack.use(terminal.onInterrupt(interrupted));
  const left = new Promise<undefined>((resolve) =>
    leave.signal.addEventListener("abort", () => resolve(undefined), { once: true }),
  );
  const job = await Promise.race([submit(), left]);
  if (job === undefined) return 130;
  submitted.job = job;
  if (interrupts > 0) cancel(job);
  say(terminal, `${job.id} ${job.state}`);
  const told = new AbortController();
  const telling = tellStates(terminal, client, job, AbortSignal.any([leave.signal, told.signal]));
  const isCut = await streamLog(terminal, client, job.id, leave.signal);
  told.abort();
  await telling;
  if (leave.signal.aborted) return 130;
  const ended = await client.call("jobShow", { params: { jobId: job.id } });
  if (isCut) say(terminal, LOG_CUT_NOTE);
  return report(terminal, ended);
}

/** Streams until the job has ended; tells whether output was cut. */
export async function streamLog(
  terminal: Terminal,
  client: Client,
  jobId: string,
  signal: AbortSignal,
): Promise<boolean> {
  let after: string | undefined;
  let isCut = false;
  let awaySince: number | undefined;
  while (!signal.aborted) {
    try {
      const query = after === undefined ? {} : { after };
      for await (const page of client.stream("jobLogTail", { params: { jobId }, query }, { signal })) {
        awaySince = undefined;
        printChunks(terminal, page);
        after = page.chunks.at(-1)?.cursor ?? after;
        isCut = page.cut;
        if (page.ended) return isCut;
      }
    } catch (error) {
      if (signal.aborted) break;
      if (
        !(error instanceof Failure) ||
        !["controller_unreachable", "database_unavailable", "stopping", "bad_answer"].includes(error.code)
      )
        throw error;
      const now = terminal.clock.monotonicMs();
      if (awaySince === undefined) say(terminal, "the controller is away; the job goes on, waiting for it");
      awaySince ??= now;
      if (now - awaySince > AWAY_MS_MAX) throw error;
    }
    await terminal.clock.sleep(RESUME_MS, signal);
  }
  return isCut;
}

export function printChunks(terminal: Terminal, page: LogPage, only?: "stdout" | "stderr"): void {
  for (const chunk of page.chunks) {
    if (only !== undefined && chunk.stream !== only) continue;
    const output = chunk.stream === "stdout" ? terminal.stdout : terminal.stderr;
    output.write(chunk.base64 === undefined ? chunk.text : Buffer.from(chunk.base64, "base64"));
  }
}

/** Says where the job is while nothing of it can be seen yet: blocked and why, or which node has it. */
async function tellStates(terminal: Terminal, client: Client, job: Job, signal: AbortSignal): Promise<void> {
  let said = "queued";
  let looks = 0;
  while (!signal.aborted) {
    const seen = await client.call("jobShow", { params: { jobId: job.id } }, { signal }).catch(() => undefined);
    if (signal.aborted || (seen !== undefined && isFinal(seen.state))) return;
    const now = seen === undefined ? said : stateLine(seen, ++looks);
    if (now !== said) say(terminal, now);
    said = now;
    await terminal.clock.sleep(seen?.state === "running" ? 5 * LOOK_MS : LOOK_MS / 5, signal);
  }
}

/** A job that fits and is not taken within a second or two waits for a slot. */
const LOOKS_UNTIL_BUSY = 8;

function stateLine(job: JobDetail, looks: number): string {
  if (job.state === "queued" && job.blocked !== null) return `blocked: ${job.blocked}`;
  if (job.state === "queued")
    return looks < LOOKS_UNTIL_BUSY ? "queued" : "waits: every slot of the nodes that fit is busy";
  if (job.state === "scheduled")
    return `waits until ${job.notBefore ?? "?"}${job.reason === null ? "" : ` (${job.reason})`}`;
  return job.state === "running"
    ? `running on ${job.nodeName ?? "?"}${job.attempt > 1 ? `, attempt ${job.attempt}` : ""}`
    : "queued";
}

/** As a shell has it for a command that was not found. */
const NOT_EXECUTED = 127;

function report(terminal: Terminal, job: JobDetail): number {
  if (job.state === "succeeded") return 0;
  if (job.state === "cancelled") {
    say(terminal, "cancelled");
    return 130;
  }
  if (job.reason === "exec-failed") {
    say(terminal, `failed: ${commandLine(job.command)}: ${job.message ?? "could not be executed"}`);
    return NOT_EXECUTED;
  }
  const why = [job.reason === "exit-code" ? `exit code ${job.exitCode}` : job.reason, job.message]
    .filter(Boolean)
    .join("; ");
  say(terminal, `${job.state}: ${why}`);
  if (job.exitCode !== null && job.exitCode !== 0) return job.exitCode;
  const signal = /ended by (SIG[A-Z0-9]+)/.exec(job.message ?? "")?.[1];
  const number = Object.entries(os.constants.signals).find(([name]) => name === signal)?.[1];
  return number === undefined ? 1 : 128 + number;
}

function say(terminal: Terminal, text: string): void {
  terminal.stderr.write(`${colours(terminal, "stderr").dim(`· ${visible(text)}`)}\n`);
}
