// SPDX-License-Identifier: Apache-2.0
// From a claimed job to a launch that waits at its gate. Rule: what is the job's own fault fails the job; what is the
// machine's fault gives the job back.

import type { ClaimedJob } from "../protocol/agent-schema.ts";
import { Failure, messageOf } from "../std/errors.ts";
import type { JobId } from "../std/ids.ts";
import { type Launcher, launchIdOf, type PreparedLaunch, type Purpose } from "../launcher/launcher.ts";
import { inputFile, writeInput, writeTimeLimit } from "./launch-notes.ts";
import { notStarted, type Seen } from "./outcome.ts";

export type PreparedJob =
  | { readonly kind: "prepared"; readonly launch: PreparedLaunch }
  /** failure: the machine's fault, if it is one. */
  | { readonly kind: "unstarted"; readonly seen: Seen; readonly why: string; readonly failure: Failure | undefined };

export async function prepareJob(launcher: Launcher, job: ClaimedJob): Promise<PreparedJob> {
  const purpose: Purpose = { kind: "attempt", jobId: job.jobId as JobId, epoch: job.epoch };
  const directory = launcher.directoryOf(launchIdOf(purpose));
  try {
    const prepared = await launcher.prepare({
      purpose,
      argv: job.command,
      ...(job.workingDirectory === null ? {} : { workingDirectory: job.workingDirectory }),
      environment: {
        ...job.environment,
        HOLDFAST_INPUT: inputFile(directory),
        HOLDFAST_RESULT: launcher.resultIn(directory),
        HOLDFAST_JOB_ID: job.jobId,
        HOLDFAST_ATTEMPT: String(job.attempt),
        ...placementVariables(job),
      },
    });
    if (prepared.kind === "already-launched") {
      const why = "this attempt was launched on this node before";
      return {
        kind: "unstarted",
        seen: { outcome: { kind: "interrupted", message: why }, wasAsked: true },
        why,
        failure: undefined,
      };
    }
    return await withInput(launcher, prepared.launch, job);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return unstarted(error);
  }
}

/** For a job that asked for room: which path it was given, and by which GPUs. */
function placementVariables({ placement }: ClaimedJob): Readonly<Record<string, string>> {
  return placement === undefined ? {} : { HOLDFAST_PATH: placement.path, HOLDFAST_GPUS: placement.gpus.join(",") };
}

async function withInput(launcher: Launcher, launch: PreparedLaunch, job: ClaimedJob): Promise<PreparedJob> {
  try {
    writeInput(launch.directory, job.input);
    await launcher.giveToJob(inputFile(launch.directory));
    writeTimeLimit(launch.directory, job.timeLimitMs);
    return { kind: "prepared", launch };
  } catch (error) {
    await launch.abandon();
    await launcher.remove(launch.launchId);
    throw error;
  }
}

function unstarted(failure: Failure): PreparedJob {
  const faults = failure.details.map((fault) => `${fault.place} ${fault.problem}`).join("; ");
  const why = faults === "" ? messageOf(failure) : `${messageOf(failure)}: ${faults}`;
  if (failure.code !== "launch_invalid") return { kind: "unstarted", seen: notStarted(why), why, failure };
  return {
    kind: "unstarted",
    seen: { outcome: { kind: "exec-failed", message: why }, wasAsked: true },
    why,
    failure: undefined,
  };
}
