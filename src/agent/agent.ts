// SPDX-License-Identifier: Apache-2.0
// Puts a node together: hello, heartbeat, claims, renewals, and the attempts that run. Whatever an earlier life of the agent
// started is found and answered for before anything new is claimed. Jobs outlive the agent; nothing is started twice.

import type { Boundary, BoundaryState } from "../boundary/boundary.ts";
import type { Evidence } from "../locker/locker.ts";
import type { BoundaryReport, ClaimedJob, HeartbeatReply, HelloReply, LeaseRef } from "../protocol/agent-schema.ts";
import { CLAIM_MAX } from "../protocol/limits.ts";
import type { NodeFacts } from "../protocol/node-schema.ts";
import type { SceneReport, SceneWish } from "../protocol/scene-schema.ts";
import type { Adopted, Launcher } from "../launcher/launcher.ts";
import type { Clock } from "../std/clock.ts";
import { codeOf, messageOf } from "../std/errors.ts";
import type { Log } from "../std/log.ts";
import { Loop } from "../std/loop.ts";
import { Attempt, type AttemptContext } from "./attempt.ts";
import type { ToldEvidence } from "./boundary-report.ts";
import { endingOfAdopted, interrupted } from "./ending.ts";
import { writeStopReason } from "./launch-notes.ts";
import { findLaunches, type Held, isRunning, keyOf } from "./found.ts";
import type { Link } from "./link.ts";

export type OnStop = "release" | "finish" | "leave";

export type AgentOptions = {
  readonly launcher: Launcher;
  readonly link: Link;
  readonly boundary: Boundary;
  /** The boundary as it is told to the controller, its evidence signed by the node. */
  readonly boundaryReport: () => BoundaryReport;
  /** Of what this node once told the controller, only what it signed itself. */
  readonly ownEvidence: (told: ToldEvidence) => readonly Evidence[];
  readonly clock: Clock;
  readonly log: Log;
  readonly facts: () => Promise<NodeFacts>;
  /** Jobs at once. */
  readonly slots: number;
  /** Asked when it stops: an upgrade leaves the jobs, whatever a person's stop would do. */
  readonly onStop: () => OnStop;
  /** The controller has answered a heartbeat; release: what it hands out for this architecture. */
  readonly onHeartbeat?: (release: HeartbeatReply["release"]) => void;
  readonly stopGraceMs: number;
  /** What both output files of an attempt may hold on this node's disk; beyond it the job is stopped. */
  readonly outputBytesMax: number;
  /** The scenes of the node, as it tells them, and what it is asked for from afar. */
  readonly scenes?: {
    readonly report: () => SceneReport;
    readonly wish: (wish: SceneWish) => void;
    readonly onChange: (listener: () => void) => void;
  };
  /** The memory floor of the node: under it nothing is claimed, and jobs are given up. */
  readonly pressure?: {
    readonly isUnder: () => boolean;
    readonly setJobs: (jobs: () => readonly { readonly name: string; readonly giveUp: () => Promise<void> }[]) => void;
  };
  /** Replaces the node's credential; undefined when this agent does not keep it in a file of its own. */
  readonly rotate: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Called with claimed jobs before anything is done with them: for demonstrations of a sudden death. */
  readonly afterClaim?: (jobs: readonly ClaimedJob[]) => void;
};

export type AgentEnd = { readonly kind: "stopped" } | { readonly kind: "refused"; readonly reason: unknown };

const SCENE_BEAT_MS = 500;
const CLAIM_WAIT_MS = 20_000;
const CLAIM_TIMEOUT_MS = 30_000;
/** How long a stopping agent waits for the controller beyond its jobs' grace; the next agent reports what is left. */
const STOP_PATIENCE_MS = 10_000;
/** After an attempt that this node could not even prepare. */
const UNFIT_PAUSE_MS = 5_000;

/** Runs until the signal aborts or the controller refuses the node for good. */
export async function runAgent(options: AgentOptions, stopping: AbortSignal): Promise<AgentEnd> {
  const agent = new Agent(options, stopping);
  return agent.run();
}

class Agent {
  readonly #options: AgentOptions;
  readonly #stopping: AbortSignal;
  readonly #detach = new AbortController();
  readonly #attempts = new Map<string, { readonly attempt: Attempt; readonly done: Promise<void> }>();
  #changed = new AbortController();
  #isDraining = false;
  #boundaryKind: BoundaryState["kind"] = "trusted";
  /** Said once, not with every heartbeat. */
  #isRotationRefused = false;

  constructor(options: AgentOptions, stopping: AbortSignal) {
    this.#options = options;
    // The newest first: it has the least to lose.
    options.pressure?.setJobs(() =>
      [...this.#attempts.values()].toReversed().map(({ attempt, done }) => ({
        name: `job ${attempt.lease.jobId}`,
        giveUp: async () => {
          await attempt.stop("release");
          await done;
        },
      })),
    );
    this.#stopping = AbortSignal.any([stopping, options.link.refused]);
  }

  async run(): Promise<AgentEnd> {
    const { link, log } = this.#options;
    let isOnline = false;
    try {
      const session = await this.#hello();
      isOnline = true;
      log.info({ node: session.name, nodeId: session.nodeId, session: session.sessionId }, "online");
      await using stack = new AsyncDisposableStack();
      this.#beatSooner(stack.use(this.#loop("heartbeat", session.heartbeatMs, () => this.#heartbeat(session))));
      stack.use(this.#loop("renew", session.renewMs, () => this.#renew(session)));
      await this.#claimLoop(session).catch((error: unknown) => this.#unlessStopping(error));
      await this.#windDown();
      this.#detach.abort();
    } catch (error) {
      this.#unlessStopping(error);
    }
    this.#detach.abort();
    if (!isOnline) await this.#stopFound();
    await Promise.allSettled([...this.#attempts.values()].map(({ done }) => done));
    if (link.refused.aborted) return { kind: "refused", reason: link.refused.reason };
    log.info({}, "stopped");
    return { kind: "stopped" };
  }

  /** A call that a stop cut short is no fault. */
  #unlessStopping(error: unknown): void {
    if (!this.#stopping.aborted) throw error;
  }

  /** While a scene is switched somebody may be looking: at most this often beyond the usual heartbeats. */
  #beatSooner(beat: Loop): void {
    const { scenes, clock } = this.#options;
    let isWaiting = false;
    scenes?.onChange(() => {
      if (isWaiting) return;
      isWaiting = true;
      void clock.sleep(SCENE_BEAT_MS, this.#detach.signal).then(() => {
        isWaiting = false;
        beat.nudge();
      });
    });
  }

  #loop(name: string, periodMs: number, round: () => Promise<void>): Loop {
    const { clock, link, log } = this.#options;
    // A call that the end of the agent cut short is not worth a line.
    const quiet = (error: unknown): void => {
      if (!this.#detach.signal.aborted && !link.refused.aborted) throw error;
    };
    return new Loop({ name, periodMs, clock, log, round: () => round().catch(quiet) });
  }

  /** Answers for every launch of an earlier life, then begins a session with what is still held. */
  async #hello(): Promise<HelloReply> {
    const { link, facts, clock, boundary, boundaryReport, ownEvidence } = this.#options;
    const { held, others } = await findLaunches(this.#options.launcher, boundary);
    const holds = held.map(({ lease }) => lease);
    const input = async () => ({
      body: { facts: await facts(), boundary: boundaryReport(), now: new Date(clock.now()).toISOString(), holds },
    });
    const session = await link.call("nodeHello", input, { signal: this.#stopping });
    const verdicts = new Map(session.verdicts.map((verdict) => [`${verdict.jobId}/${verdict.epoch}`, verdict.verdict]));
    boundary.noteEvidence(ownEvidence(session));
    this.#noteBoundary();
    for (const one of held) this.#resume(session, one, verdicts.get(keyOf(one.lease)) ?? "unknown");
    for (const adopted of others) await this.#setAside(adopted);
    return session;
  }

  #resume(session: HelloReply, { lease, adopted }: Held, verdict: string): void {
    const { boundary, launcher, log } = this.#options;
    const attempt = new Attempt(this.#contextOf(session), lease);
    if (adopted.kind === "missing" || adopted.kind === "damaged")
      log.error(
        { ...lease, found: adopted.kind, verdict },
        "an attempt of an earlier agent whose launch directory is lost",
      );
    else log.info({ ...lease, found: adopted.kind, verdict }, "an attempt of an earlier agent");
    const watching = this.#watchAdopted(attempt, adopted);
    if (watching !== undefined) {
      const isOurs = verdict === "done";
      this.#track(attempt, isOurs ? watching : Promise.all([watching, attempt.drop("stale_epoch")]).then(() => {}));
      return;
    }
    const end = isRunning(adopted) ? undefined : endingOfAdopted(adopted);
    const forget = (): Promise<void> => launcher.remove(adopted.launchId).then(() => boundary.closeAttempt(lease));
    this.#track(attempt, verdict === "done" && end !== undefined ? attempt.settle(end) : forget());
  }

  /** Follows what still runs; undefined when nothing of it does. */
  #watchAdopted(attempt: Attempt, adopted: Adopted): Promise<void> | undefined {
    if (isRunning(adopted)) return attempt.watch(adopted.launch);
    if (!("trace" in adopted) || adopted.survivors.length === 0) return undefined;
    const { launchId, trace } = adopted;
    return attempt.watchUnclear(trace, async () => {
      // Its shim may have written how it ended, after all.
      const again = await this.#options.launcher.adopt(launchId, trace.identity);
      return isRunning(again) ? interrupted("its launch directory was damaged") : endingOfAdopted(again);
    });
  }

  /** Said when it changes, not with every heartbeat. */
  #noteBoundary(): void {
    const { boundary, log } = this.#options;
    const { state } = boundary;
    if (state.kind === this.#boundaryKind) return;
    this.#boundaryKind = state.kind;
    if (state.kind === "trusted") log.info({}, "the boundary is trusted: jobs are taken");
    else log.error({ boundary: state.kind, why: state.why }, "this node refuses every job");
    this.#wake();
  }

  /** Without a spec nothing is known but that it may not be started again. One that provably never ran goes. */
  async #setAside(adopted: Adopted): Promise<void> {
    const { launcher, log } = this.#options;
    if (adopted.kind === "not-started") await launcher.remove(adopted.launchId);
    else
      log.error(
        { launchId: adopted.launchId, found: adopted.kind },
        "a launch directory without its spec, or damaged while it runs: left for an operator",
      );
  }

  #contextOf(session: HelloReply): AttemptContext {
    const { boundary, launcher, link, clock, log, stopGraceMs, outputBytesMax } = this.#options;
    const { sessionId } = session;
    return {
      boundary,
      launcher,
      link,
      clock,
      log,
      sessionId,
      stopGraceMs,
      outputBytesMax,
      detach: this.#detach.signal,
    };
  }

  #track(attempt: Attempt, work: Promise<void>): void {
    const { log } = this.#options;
    const key = keyOf(attempt.lease);
    const done = work
      .catch((error: unknown) => {
        if (!this.#detach.signal.aborted && !this.#stopping.aborted)
          log.error({ ...attempt.lease, error: messageOf(error) }, "an attempt went wrong inside the agent");
      })
      .finally(() => {
        this.#attempts.delete(key);
        this.#wake();
      });
    this.#attempts.set(key, { attempt, done });
  }

  #wake(): void {
    const before = this.#changed;
    this.#changed = new AbortController();
    before.abort();
  }

  async #heartbeat(session: HelloReply): Promise<void> {
    const { boundary, boundaryReport, link, facts, clock } = this.#options;
    await boundary.probe();
    this.#noteBoundary();
    const { sessionId } = session;
    const { scenes } = this.#options;
    const input = async () => ({
      body: {
        sessionId,
        facts: await facts(),
        boundary: boundaryReport(),
        ...(scenes === undefined ? {} : { scenes: scenes.report() }),
        now: new Date(clock.now()).toISOString(),
      },
    });
    const { drain, rotate, wish, release } = await link.call("nodeHeartbeat", input, { signal: this.#detach.signal });
    this.#options.onHeartbeat?.(release);
    this.#noteDrain(drain);
    if (wish !== null) scenes?.wish(wish);
    if (rotate) await this.#rotate();
  }

  async #rotate(): Promise<void> {
    const { log, rotate } = this.#options;
    if (rotate !== undefined) {
      await rotate(this.#detach.signal);
      log.info({}, "the node's credential was replaced");
    } else if (!this.#isRotationRefused) {
      this.#isRotationRefused = true;
      log.warn(
        {},
        "asked to replace its credential, which was given by environment or standard input: replace it there",
      );
    }
  }

  async #renew(session: HelloReply): Promise<void> {
    if (this.#attempts.size === 0) return;
    const leases = (): LeaseRef[] => [...this.#attempts.values()].map(({ attempt }) => attempt.lease);
    const input = async () => ({ body: { sessionId: session.sessionId, leases: leases() } });
    const reply = await this.#options.link.call("nodeRenewals", input, { signal: this.#detach.signal });
    this.#noteDrain(reply.drain);
    const find = (lease: LeaseRef): Attempt | undefined => this.#attempts.get(keyOf(lease))?.attempt;
    for (const lease of reply.cancel) void find(lease)?.stop("cancel");
    for (const { verdict, ...lease } of reply.verdicts) {
      // already_ended: its ending was acknowledged between this question and its answer.
      if (verdict === "done" || verdict === "already_done" || verdict === "already_ended") continue;
      void find(lease)?.drop(verdict);
    }
  }

  #noteDrain(drain: boolean): void {
    if (drain === this.#isDraining) return;
    this.#isDraining = drain;
    this.#options.log.info({}, drain ? "draining: claims nothing until it is made active again" : "active again");
    this.#wake();
  }

  /** One claim at a time; a number that got no answer is asked again, so that its leases are not lost. */
  async #claimLoop(session: HelloReply): Promise<void> {
    const { boundary, clock, link, slots, afterClaim } = this.#options;
    const how = { signal: this.#stopping, timeoutMs: CLAIM_TIMEOUT_MS, isLongPoll: true };
    for (let number = 1; !this.#stopping.aborted; ) {
      const changed = this.#changed.signal;
      const max = Math.min(CLAIM_MAX, slots - this.#attempts.size);
      const mayClaim = boundary.state.kind === "trusted" && this.#options.pressure?.isUnder() !== true;
      if (max <= 0 || this.#isDraining || !mayClaim) {
        await clock.sleep(session.heartbeatMs, AbortSignal.any([this.#stopping, changed]));
        continue;
      }
      const body = { sessionId: session.sessionId, number, max, waitMs: CLAIM_WAIT_MS };
      const reply = await link.call("nodeClaim", { body }, how);
      number++;
      this.#noteDrain(reply.drain);
      if (reply.jobs.length > 0) afterClaim?.(reply.jobs);
      for (const job of reply.jobs) this.#begin(session, job);
    }
  }

  #begin(session: HelloReply, job: ClaimedJob): void {
    if (this.#attempts.has(keyOf(job))) return;
    const attempt = new Attempt(this.#contextOf(session), job);
    this.#track(
      attempt,
      attempt.run(job).then((isFit) => (isFit ? undefined : this.#pause())),
    );
  }

  /** Keeps the slot of an attempt that could not be prepared for a while: a full disk must not eat the queue. */
  async #pause(): Promise<void> {
    await this.#options.clock.sleep(UNFIT_PAUSE_MS, this.#stopping);
  }

  /** Stopped before there was a session: nobody can be told yet, but the jobs of the agent before must not run on unless they may. */
  async #stopFound(): Promise<void> {
    const { launcher, onStop, stopGraceMs } = this.#options;
    if (this.#modeOf(onStop()) !== "release") return;
    const found = await Promise.all((await launcher.list()).map((launchId) => launcher.adopt(launchId)));
    // Model servers outlive the agent.
    const jobs = found.filter(({ spec }) => spec?.purpose.kind === "attempt");
    const alive = jobs.flatMap((adopted) => (isRunning(adopted) ? [adopted.launch] : []));
    await Promise.all(
      alive.map(async (launch) => {
        writeStopReason(launch.directory, "release");
        await launcher.stop(launch, { graceMs: stopGraceMs });
      }),
    );
  }

  async #windDown(): Promise<void> {
    const { clock, link, log, onStop, stopGraceMs } = this.#options;
    const running = [...this.#attempts.values()];
    if (running.length === 0) return;
    const mode = this.#modeOf(onStop());
    log.info({ jobs: running.length, mode }, "stopping");
    if (mode === "leave") return;
    const all = Promise.allSettled(running.map(({ done }) => done));
    if (mode === "finish") return void (await all);
    const stops = running.map(({ attempt }) =>
      link.refused.aborted ? attempt.drop("stale_epoch") : attempt.stop("release"),
    );
    const late = new AbortController();
    await Promise.race([Promise.all([...stops, all]), clock.sleep(stopGraceMs + STOP_PATIENCE_MS, late.signal)]);
    late.abort();
  }

  /** A node whose credential is gone stops its jobs; one that another agent has taken over leaves them to that one. */
  #modeOf(onStop: OnStop): OnStop {
    const { refused } = this.#options.link;
    if (!refused.aborted) return onStop;
    return ["unauthenticated", "node_retired"].includes(codeOf(refused.reason)) ? "release" : "leave";
  }
}
