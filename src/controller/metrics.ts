// SPDX-License-Identifier: Apache-2.0
// What this controller counts, by prom-client, in a registry of its own. What the database knows (jobs, nodes) is read at
// the scrape, inside the organisation of whoever asks. docs/metrics.md lists all names; a test compares the list.

import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { LoopRun } from "../std/loop.ts";

export type Request = {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
};

export class Metrics {
  readonly registry = new Registry();
  readonly #requests = new Counter({
    name: "holdfast_http_requests_total",
    help: "Requests answered, by route, method and status",
    labelNames: ["route", "method", "status"],
    registers: [this.registry],
  });
  readonly #seconds = new Histogram({
    name: "holdfast_http_request_seconds",
    help: "Duration of requests, by route; long polls and streams as long as they lasted",
    labelNames: ["route"],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30],
    registers: [this.registry],
  });
  readonly #loopSeconds = new Gauge({
    name: "holdfast_loop_last_run_age_seconds",
    help: "Time since the last round of a loop of this controller ended",
    labelNames: ["loop"],
    registers: [this.registry],
  });
  readonly #loopFailed = new Gauge({
    name: "holdfast_loop_last_run_failed",
    help: "1 when the last round of the loop failed",
    labelNames: ["loop"],
    registers: [this.registry],
  });

  readonly #listener = new Gauge({
    name: "holdfast_listener_heard",
    help: "1 while this controller hears what others say; 0: wakes wait for the poll",
    registers: [this.registry],
  });

  constructor(version: string) {
    collectDefaultMetrics({ register: this.registry });
    const info = new Gauge({
      name: "holdfast_info",
      help: "1, with the version of this controller",
      labelNames: ["version"],
      registers: [this.registry],
    });
    info.set({ version }, 1);
  }

  request({ route, method, status, seconds }: Request): void {
    this.#requests.inc({ route, method, status });
    this.#seconds.observe({ route }, seconds);
  }

  loop(name: string, run: LoopRun | undefined, now: number): void {
    if (run === undefined) return;
    this.#loopSeconds.set({ loop: name }, Math.max(0, now - run.startedAt - run.tookMs) / 1000);
    this.#loopFailed.set({ loop: name }, run.error === undefined ? 0 : 1);
  }

  listener(isHeard: boolean): void {
    this.#listener.set(isHeard ? 1 : 0);
  }
}
