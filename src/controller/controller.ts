// SPDX-License-Identifier: Apache-2.0
// Puts a controller together: routes, loops, listener. Any number of them may run on one database; none leads.

import https from "node:https";
import type { ConnectionOptions, Database } from "../db/pool.ts";
import { systemClock } from "../std/clock.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { idMaker } from "../std/ids.ts";
import type { Log } from "../std/log.ts";
import { Loop } from "../std/loop.ts";
import { systemRandom } from "../std/random.ts";
import { accessRoutes } from "./access/access-routes.ts";
import { signInRoutes } from "./access/sign-in-routes.ts";
import { userRoutes } from "./access/user-routes.ts";
import { type Context, type ControllerConfig, defaultConfig } from "./context.ts";
import { DatabaseClock } from "./database-clock.ts";
import type { Enrolment } from "./enrolment.ts";
import { buildServer, type KeyPair } from "./http/server.ts";
import { jobRoutes } from "./jobs/job-routes.ts";
import { evaluateLanes } from "./jobs/lane-loop.ts";
import { leaseRoutes } from "./jobs/lease-routes.ts";
import { sweep } from "./jobs/sweep.ts";
import { Metrics } from "./metrics.ts";
import { modelRoutes } from "./models/model-routes.ts";
import { enrolRoutes } from "./nodes/enrol-routes.ts";
import { nodeRoutes } from "./nodes/node-routes.ts";
import { operationRoutes } from "./operations/operation-routes.ts";
import { overviewRoutes } from "./overview-routes.ts";
import { projectRoutes } from "./projects/project-routes.ts";
import { type ListenerState, noListener, WakeListener } from "./wake-listener.ts";
import { WakeRelay } from "./wake-relay.ts";
import { Wakeups } from "./wakeups.ts";

export type ControllerOptions = {
  readonly db: Database;
  readonly log: Log;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly config?: Partial<ControllerConfig>;
  /** Direct, not through a pooler: for LISTEN. Without it other controllers' wakes are found by the poll. */
  readonly listenConnection?: ConnectionOptions;
  /** Where the built page lies. */
  readonly pageDirectory?: string;
  /** Reads the server's key and certificate, now and then anew. Without it the controller serves plain HTTP. */
  readonly keyPair?: () => Promise<KeyPair>;
  /** Where nodes reach this controller; else where it listens. */
  readonly publicUrl?: string;
  readonly enrolment?: Enrolment;
};

/** How often a renewed certificate, or a new address of this machine, is looked for. */
const KEY_PAIR_PERIOD_MS = 3_600_000;

export type Controller = AsyncDisposable & {
  /** Such as http://127.0.0.1:7440 */
  readonly url: string;
};

/** Returns when it listens and its loops run. Disposing ends long polls and streams, then closes; the database is the caller's. */
export async function startController(options: ControllerOptions): Promise<Controller> {
  const clock = systemClock;
  const random = systemRandom;
  const { db, log } = options;
  await using starting = new AsyncDisposableStack();
  const stopping = new AbortController();
  let listening = "";
  const loops = new Map<string, Loop>();
  const databaseClock = new DatabaseClock({ db, clock, log });
  await databaseClock.start(starting);
  const shared = {
    db,
    config: { ...defaultConfig, ...options.config },
    clock,
    random,
    ids: idMaker({ ...clock, now: () => databaseClock.now() }, random),
    log,
    wakeups: new Wakeups(clock),
    metrics: new Metrics(options.config?.version ?? defaultConfig.version),
    loops,
    isStopping: () => stopping.signal.aborted,
    address: () => options.publicUrl ?? listening,
    enrolment: options.enrolment,
  };
  const context: Context = { ...shared, listener: relayWakes(shared, options.listenConnection, starting) };
  const lanes = startLoops(context, loops, starting);
  const handlers = {
    ...overviewRoutes(context),
    ...operationRoutes(context),
    ...signInRoutes(context),
    ...userRoutes(context),
    ...accessRoutes(context),
    ...nodeRoutes(context),
    ...enrolRoutes(context),
    ...jobRoutes(context),
    ...modelRoutes(context),
    ...projectRoutes(context),
    ...leaseRoutes(context, () => lanes.nudge()),
  };
  const keyPair = await options.keyPair?.();
  const { pageDirectory } = options;
  const server = buildServer({ context, handlers, stopping: stopping.signal, pageDirectory, keyPair });
  starting.defer(async () => {
    stopping.abort();
    await server.close();
  });
  const url = await openListener(server, options);
  listening = url;
  if (options.keyPair !== undefined) starting.use(keepKeyPair(context, server.server, options.keyPair));
  log.info({ url }, "controller listens");
  const running = starting.move();
  return { url, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** Connections that begin after a renewal get the new certificate; nobody is cut off. */
function keepKeyPair(context: Context, server: object, read: () => Promise<KeyPair>): Loop {
  const round = async (): Promise<void> => {
    const keyPair = await read();
    if (server instanceof https.Server) server.setSecureContext(keyPair);
  };
  const { clock, log } = context;
  return new Loop({ name: "certificate", periodMs: KEY_PAIR_PERIOD_MS, clock, log, round });
}

/** Returns the loop that decides what is blocked, for whoever knows that it should look now. */
function startLoops(context: Context, loops: Map<string, Loop>, stack: AsyncDisposableStack): Loop {
  const { clock, config, log } = context;
  const rounds = { lanes: () => evaluateLanes(context), sweep: () => sweep(context) };
  const start = (name: keyof typeof rounds): Loop => {
    const loop = stack.use(new Loop({ name, periodMs: config.sweepMs, clock, log, round: rounds[name] }));
    loops.set(name, loop);
    return loop;
  };
  start("sweep");
  return start("lanes");
}

function relayWakes(
  shared: Omit<Context, "listener">,
  connection: ConnectionOptions | undefined,
  stack: AsyncDisposableStack,
): ListenerState {
  if (connection === undefined) return noListener;
  const { config, ...parts } = shared;
  const sender = Buffer.from(shared.random.bytes(9)).toString("base64url");
  const relay = stack.use(new WakeRelay({ ...parts, sender }));
  const { probeMs, probeWithinMs } = config;
  const onWake = (payload: string): void => relay.receive(payload);
  return stack.use(new WakeListener({ ...parts, connection, sender, onWake, probeMs, probeWithinMs }));
}

type Listener = { listen(options: { host: string; port: number }): Promise<string> };

async function openListener(server: Listener, { host, port }: ControllerOptions): Promise<string> {
  try {
    return await server.listen({ host, port });
  } catch (error) {
    const code = codeOf(error);
    const address = `${host}:${port}`;
    if (code === "EADDRINUSE")
      throw new Failure("port_taken", `${address} is taken by another program`, { cause: error });
    if (["EACCES", "EADDRNOTAVAIL", "ENOTFOUND", "EINVAL", "EAI_AGAIN"].includes(code)) {
      throw new Failure("listen_refused", `cannot listen on ${address}: ${messageOf(error)}`, { cause: error });
    }
    throw error;
  }
}
