// SPDX-License-Identifier: Apache-2.0
// What every part of the controller is given: built once in controller.ts, with overrides for tests. Nothing is global.

import type { Database } from "../db/pool.ts";
import type { Clock } from "../std/clock.ts";
import type { IdMaker } from "../std/ids.ts";
import type { Log } from "../std/log.ts";
import type { Random } from "../std/random.ts";
import type { LoopRun } from "../std/loop.ts";
import type { Enrolment } from "./enrolment.ts";
import type { Metrics } from "./metrics.ts";
import type { ListenerState } from "./wake-listener.ts";
import type { Wakeups } from "./wakeups.ts";

export type ControllerConfig = {
  readonly version: string;
  /** How long a lease lasts without renewal. */
  readonly leaseMs: number;
  /** A claim that is not reported started within this time is returned. */
  readonly startWithinMs: number;
  readonly heartbeatMs: number;
  /** How often an agent renews, and so how soon it hears of a cancel. */
  readonly renewMs: number;
  readonly sweepMs: number;
  /** First wait before a lost or failed job is tried again; doubles up to retryCapMs. */
  readonly retryBaseMs: number;
  readonly retryCapMs: number;
  /** The poll behind wake-ups, for work that another controller queued. */
  readonly pollMs: number;
  /** How often the listening connection is tried with a notification of our own; a half-open one is deaf without an error. */
  readonly probeMs: number;
  /** One that has not heard it by then is replaced. */
  readonly probeWithinMs: number;
};

export const defaultConfig: ControllerConfig = {
  version: "0.1.0",
  leaseMs: 30_000,
  startWithinMs: 15_000,
  heartbeatMs: 5_000,
  renewMs: 5_000,
  sweepMs: 1_000,
  retryBaseMs: 500,
  retryCapMs: 300_000,
  pollMs: 1_000,
  probeMs: 10_000,
  probeWithinMs: 5_000,
};

export type Context = {
  readonly db: Database;
  readonly config: ControllerConfig;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: IdMaker;
  readonly log: Log;
  readonly wakeups: Wakeups;
  readonly metrics: Metrics;
  /** The loops of this controller by name, for whoever looks whether they run. */
  readonly loops: ReadonlyMap<string, { readonly last: LoopRun | undefined }>;
  readonly isStopping: () => boolean;
  /** Where nodes reach this controller, without a path; known once it listens. */
  readonly address: () => string;
  /** Undefined: machines are enrolled by hand, and get no certificate. */
  readonly enrolment: Enrolment | undefined;
  /** Whether other controllers are heard: for doctor and metrics. */
  readonly listener: ListenerState;
};
