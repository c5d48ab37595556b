// SPDX-License-Identifier: Apache-2.0
// A simulated controller: a queue with epochs and leases that hands claims out again, answers late or not at all, lets leases
// run out, and keeps what the node once said of its own locker.

import type { Chance } from "./chance.ts";
import { RememberedEvidence } from "./evidence.ts";
import type { Ref } from "./launches.ts";

const ATTEMPTS_MAX = 3;

type Job = { readonly jobId: string; epoch: number; state: "queued" | "claimed" | "started" | "ended"; used: number };

export class Controller {
  readonly #chance: Chance;
  readonly #jobs: readonly Job[];
  /** Claims whose answer may come again. */
  readonly #claims: Ref[] = [];
  readonly evidence = new RememberedEvidence();

  constructor(chance: Chance, jobs: number) {
    this.#chance = chance;
    this.#jobs = Array.from({ length: jobs }, (_, index) => ({
      jobId: `job_${index}`,
      epoch: 0,
      state: "queued",
      used: 0,
    }));
  }

  get isDone(): boolean {
    return this.#jobs.every(({ state }) => state === "ended");
  }

  /** For a report. */
  get unfinished(): string {
    return this.#jobs
      .flatMap(({ jobId, epoch, state }) => (state === "ended" ? [] : [`${jobId}/${epoch} ${state}`]))
      .join(", ");
  }

  #find({ jobId }: Ref): Job | undefined {
    return this.#jobs.find((job) => job.jobId === jobId);
  }

  #isHeld(job: Job | undefined, { epoch }: Ref): job is Job {
    return job?.epoch === Number(epoch) && (job.state === "claimed" || job.state === "started");
  }

  /** What a claim gets; undefined while there is nothing. */
  claim(mayRepeat: boolean): Ref | undefined {
    if (mayRepeat && this.#claims.length > 0 && this.#chance.happens(0.2)) return this.#chance.pick(this.#claims);
    const queued = this.#jobs.filter(({ state }) => state === "queued");
    if (queued.length === 0) return undefined;
    const job = this.#chance.pick(queued);
    job.epoch++;
    job.state = "claimed";
    const ref = { jobId: job.jobId, epoch: String(job.epoch) };
    this.#claims.push(ref);
    return ref;
  }

  /** Whether the start is taken. */
  start(ref: Ref): boolean {
    const job = this.#find(ref);
    if (!this.#isHeld(job, ref)) return false;
    job.state = "started";
    return true;
  }

  end(ref: Ref, outcome: string): void {
    const job = this.#find(ref);
    if (!this.#isHeld(job, ref)) return;
    if (outcome === "not-started") job.state = "queued";
    else if (outcome === "interrupted") this.#useUp(job);
    else job.state = "ended";
  }

  #useUp(job: Job): void {
    job.used++;
    job.state = job.used >= ATTEMPTS_MAX ? "ended" : "queued";
  }

  isLost(ref: Ref): boolean {
    return !this.#isHeld(this.#find(ref), ref);
  }

  /** A node begins anew with these; the others of its attempts come back, perhaps only later. */
  hello(holds: readonly Ref[], isLate: boolean): void {
    if (isLate) return;
    for (const job of this.#jobs)
      if ((job.state === "claimed" || job.state === "started") && !holds.some(({ jobId }) => jobId === job.jobId))
        this.#return(job);
  }

  #return(job: Job): void {
    if (job.state === "claimed") job.state = "queued";
    else this.#useUp(job);
  }

  expireLease(): void {
    const held = this.#jobs.filter(({ state }) => state === "claimed" || state === "started");
    if (held.length > 0) this.#return(this.#chance.pick(held));
  }
}
