// SPDX-License-Identifier: Apache-2.0
// One attempt on this node, from its claim or adoption to the controller's word about its end.
//
//   starting ──start taken──► running ──exit──► reporting ──verdict──► over
//       └── not started ──────────────────────────┘    any ──lease lost──► dropped: stopped, its result never sent
//
// Rules: the gate opens only after every slot of the locker holds the entry and the controller took the start; launch
// directory and entry go only after a verdict.

import { type Boundary, storedIdentity } from "../boundary/boundary.ts";
import type { ClaimedJob, LeaseRef, VerdictKind } from "../protocol/agent-schema.ts";
import type { StopReason } from "../protocol/job.ts";
import type { Clock } from "../std/clock.ts";
import { messageOf } from "../std/errors.ts";
import type { JobId } from "../std/ids.ts";
import type { Log } from "../std/log.ts";
import {
  type Launch,
  type Launcher,
  launchIdOf,
  pathsIn,
  type PreparedLaunch,
  type UnclearLaunch,
} from "../launcher/launcher.ts";
import type { Identity } from "../std/process.ts";
import { ageMs } from "./age.ts";
import { sendEnding } from "./ending.ts";
import { readStopReason, readTimeLimit, writeStopReason } from "./launch-notes.ts";
import type { Link } from "./link.ts";
import { pumpLog } from "./log-pump.ts";
import { passesOutputLimit } from "./output-size.ts";
import { notStarted, reportOf, seen, type Seen } from "./outcome.ts";
import { prepareJob } from "./prepare-job.ts";
import { readResult } from "./result.ts";

const STOP_AGAIN_MS = 10_000;

export type AttemptContext = {
  readonly boundary: Boundary;
  readonly launcher: Launcher;
  readonly link: Link;
  readonly clock: Clock;
  readonly log: Log;
  readonly sessionId: string;
  readonly stopGraceMs: number;
  readonly outputBytesMax: number;
  /** Aborts when the agent leaves: what still runs, and what is not reported, is the next one's. */
  readonly detach: AbortSignal;
};

/** What may run, as it is followed to its end. */
type Followed = {
  readonly directory: string;
  readonly identity: Identity | undefined;
  /** Undefined when the agent leaves first. */
  readonly waitEnd: (signal: AbortSignal) => Promise<Seen | undefined>;
  /** Whether nothing of it is left. */
  readonly stop: (graceMs: number) => Promise<boolean>;
};

export class Attempt {
  readonly lease: LeaseRef;
  readonly #context: AttemptContext;
  readonly #log: Log;
  /** Ends what talks to the controller about this lease. */
  readonly #cut = new AbortController();
  /** Once its gate may have been opened. */
  #running: Followed | undefined;
  #stopReason: StopReason | undefined;
  #isDropped = false;
  #isOver = false;
  #stopping: Promise<void> | undefined;

  constructor(context: AttemptContext, lease: LeaseRef) {
    this.lease = { jobId: lease.jobId, epoch: lease.epoch };
    this.#context = context;
    this.#log = context.log.child(this.lease);
  }

  get #talk(): AbortSignal {
    return AbortSignal.any([this.#context.detach, this.#cut.signal]);
  }

  get #launchId(): string {
    return launchIdOf({ kind: "attempt", jobId: this.lease.jobId as JobId, epoch: this.lease.epoch });
  }

  get #directory(): string {
    return this.#context.launcher.directoryOf(this.#launchId);
  }

  /** From the claim to the end. False when this machine could not launch it, through no fault of the job. */
  async run(job: ClaimedJob): Promise<boolean> {
    if (this.#mayNotStart()) {
      await this.#report(notStarted("the agent is stopping"));
      return true;
    }
    const prepared = await prepareJob(this.#context.launcher, job);
    if (prepared.kind === "unstarted") {
      this.#log.error({ error: prepared.why }, "a job could not be launched");
      await this.#report(prepared.seen);
      return prepared.failure === undefined;
    }
    await this.#start(prepared.launch, job);
    return true;
  }

  async #start(launch: PreparedLaunch, job: ClaimedJob): Promise<void> {
    const refused = await this.#enterBoundary(launch);
    if (refused !== undefined) {
      await launch.abandon();
      this.#log.error({ why: refused }, "a job was refused");
      if (!this.#context.detach.aborted) await this.#settle(notStarted(refused));
      return;
    }
    const isTaken = !this.#mayNotStart() && (await this.#tellStart());
    // A stop or the loss of the lease may have come while the controller was asked.
    if (!isTaken || this.#mayNotStart()) {
      await launch.abandon();
      // Without a word from the controller the next agent, or the lease's end, settles it.
      if (!this.#context.detach.aborted) await this.#settle(notStarted("it was stopped before it was started"));
      return;
    }
    this.#running = this.#followed(launch);
    await launch.openGate();
    this.#log.info({ program: job.command[0], pid: launch.identity.pid }, "job started");
    await this.watch(launch);
  }

  /** The durable entry before the gate. Why not, when there is none. */
  async #enterBoundary(launch: PreparedLaunch): Promise<string | undefined> {
    const { launchId, identity } = launch;
    const start = { ...this.lease, launchId, identity: storedIdentity(identity) };
    const started = await this.#context.boundary.startAttempt(start);
    return started.kind === "admitted" ? undefined : started.text;
  }

  #mayNotStart(): boolean {
    return this.#isDropped || this.#stopReason !== undefined || this.#context.detach.aborted;
  }

  /** Whether the controller took the start. */
  async #tellStart(): Promise<boolean> {
    const { link, sessionId } = this.#context;
    let verdict: VerdictKind;
    try {
      const reply = await link.call(
        "nodeStarts",
        { body: { sessionId, starts: [this.lease] } },
        { signal: this.#talk },
      );
      verdict = reply.verdicts[0]?.verdict ?? "unknown";
    } catch (error) {
      if (!this.#talk.aborted) this.#log.error({ error: messageOf(error) }, "the start of a job was refused");
      return false;
    }
    if (verdict === "done" || verdict === "already_done") return true;
    void this.drop(verdict);
    return false;
  }

  /** Follows a launch, ours or adopted, to its end. */
  watch(launch: Launch): Promise<void> {
    return this.#follow(this.#followed(launch));
  }

  /** Follows what still runs of a launch whose directory is lost or damaged; then its end is looked for. */
  watchUnclear(launch: UnclearLaunch, findEnd: () => Promise<Seen>): Promise<void> {
    const { launcher } = this.#context;
    return this.#follow({
      directory: launch.directory,
      identity: launch.identity,
      waitEnd: async (signal) => ((await launcher.waitEmpty(launch, signal)) ? findEnd() : undefined),
      stop: async (graceMs) => (await launcher.endUnclear(launch, graceMs)).length === 0,
    });
  }

  #followed(launch: Launch): Followed {
    const { launcher } = this.#context;
    return {
      directory: launch.directory,
      identity: launch.identity,
      waitEnd: async (signal) => {
        const ending = await launcher.waitEnding(launch, signal);
        return ending === undefined ? undefined : seen(ending);
      },
      stop: async (graceMs) => (await launcher.stop(launch, { graceMs })).kind !== "survived",
    };
  }

  async #follow(launch: Followed): Promise<void> {
    this.#running = launch;
    this.#stopReason ??= readStopReason(launch.directory);
    // A stop may have come between the gate and here, or the agent before us may have died in the middle of one.
    if (this.#isDropped || this.#stopReason !== undefined) void this.#stopRunning(launch);
    const over = new AbortController();
    const limits = Promise.all([this.#limitTime(launch, over.signal), this.#limitOutput(launch, over.signal)]);
    const logs = this.#pumpLogs(over.signal);
    const end = await launch.waitEnd(this.#context.detach).finally(() => over.abort());
    await Promise.all([limits, logs, this.#stopping]);
    if (end !== undefined) await this.#report(end);
  }

  /** The end of a launch that runs no more: the rest of its output, then the report. */
  async settle(end: Seen): Promise<void> {
    this.#stopReason ??= readStopReason(this.#directory);
    await this.#settle(end);
  }

  async #settle(end: Seen): Promise<void> {
    await this.#pumpLogs(AbortSignal.abort());
    await this.#report(end);
  }

  async #limitTime(launch: Followed, over: AbortSignal): Promise<void> {
    const limitMs = readTimeLimit(launch.directory);
    if (limitMs === undefined || launch.identity === undefined) return;
    await this.#context.clock.sleep(Math.max(0, limitMs - ageMs(launch.identity)), over);
    if (!over.aborted) void this.stop("time-limit");
  }

  async #limitOutput(launch: Followed, over: AbortSignal): Promise<void> {
    const { clock, outputBytesMax } = this.#context;
    const limit = { paths: pathsIn(launch.directory), clock, bytesMax: outputBytesMax };
    if (await passesOutputLimit(limit, over)) void this.stop("output-limit");
  }

  /** Never rejects: output that cannot be sent keeps no job from ending. */
  async #pumpLogs(ended: AbortSignal): Promise<void> {
    const { link, sessionId, clock } = this.#context;
    const paths = pathsIn(this.#directory);
    const signal = this.#talk;
    const pump = async (stream: "stdout" | "stderr"): Promise<void> => {
      const send = (offset: number, data: Buffer) =>
        link.call(
          "nodeLog",
          { body: { sessionId, ...this.lease, stream, offset, data: data.toString("base64") } },
          { signal },
        );
      try {
        await pumpLog({ file: paths[stream], clock, send }, ended, signal);
      } catch (error) {
        if (!signal.aborted)
          this.#log.error({ stream, error: messageOf(error) }, "output of a job is not sent any more");
      }
    };
    await Promise.all([pump("stdout"), pump("stderr")]);
  }

  /** Stops the job if it still runs; the first reason stays. Resolves when it is stopped. */
  async stop(reason: StopReason): Promise<void> {
    this.#stopReason ??= reason;
    if (this.#running !== undefined) await this.#stopRunning(this.#running);
  }

  /** The lease is lost: stops the job and forgets its result. Resolves when it is stopped. */
  async drop(verdict: VerdictKind): Promise<void> {
    if (this.#isOver) return;
    if (!this.#isDropped) this.#log.warn({ verdict }, "the lease is lost: the job is stopped and its result dropped");
    this.#isDropped = true;
    this.#cut.abort();
    if (this.#running !== undefined) await this.#stopRunning(this.#running);
  }

  #stopRunning(launch: Followed): Promise<void> {
    this.#stopping ??= this.#stopUntilEnded(launch).catch((error: unknown) => {
      this.#log.error({ error: messageOf(error) }, "a job could not be stopped");
    });
    return this.#stopping;
  }

  async #stopUntilEnded(launch: Followed): Promise<void> {
    const { clock, stopGraceMs, detach } = this.#context;
    if (this.#stopReason !== undefined && !this.#isDropped) this.#noteReason(launch, this.#stopReason);
    while (!this.#isOver) {
      if ((await launch.stop(stopGraceMs)) || detach.aborted) return;
      this.#log.error({ pid: launch.identity?.pid }, "a job does not end, not even by SIGKILL: trying again");
      await clock.sleep(STOP_AGAIN_MS, detach);
    }
  }

  /** For the agent after this one. On a full disk the job is stopped all the same. */
  #noteReason(launch: Followed, reason: StopReason): void {
    this.#log.info({ reason }, "stopping a job");
    try {
      writeStopReason(launch.directory, reason);
    } catch (error) {
      this.#log.warn({ error: messageOf(error) }, "why a job is stopped could not be noted");
    }
  }

  /** Tells the end, unless the lease is lost; then nothing of the launch is needed any more. */
  async #report(end: Seen): Promise<void> {
    const { link, sessionId, launcher, detach } = this.#context;
    if (!this.#isDropped) {
      const found = await readResult(await launcher.findResult(this.#directory));
      const report = reportOf(this.lease, end, this.#stopReason, found);
      try {
        const verdict = await sendEnding({ link, sessionId, report, signal: this.#talk });
        this.#log.info({ outcome: report.outcome, stopped: report.stopped, verdict }, "job ended");
      } catch (error) {
        // Left, not lost: the next agent finds the directory and reports.
        if (detach.aborted || link.refused.aborted) return;
        if (!this.#cut.signal.aborted)
          this.#log.error({ error: messageOf(error) }, "the end of a job was refused: its lease will run out");
      }
    }
    this.#isOver = true;
    // The directory first: an entry without one is known to have been here, a directory without one would not be.
    await launcher.remove(this.#launchId);
    await this.#context.boundary.closeAttempt(this.lease);
  }
}
