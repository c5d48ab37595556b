// SPDX-License-Identifier: Apache-2.0
// Puts a controller together: routes, loops, listener. Any number of them may run on one database; none leads.

import { listen } from "../db/listen.ts";
import type { ConnectionOptions, Database } from "../db/pool.ts";
import { systemClock } from "../std/clock.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { idMaker } from "../std/ids.ts";
import type { Log } from "../std/log.ts";
import { Loop } from "../std/loop.ts";
import { systemRandom } from "../std/random.ts";
import { accessRoutes } from "./access/access-routes.ts";
import { type Context, type ControllerConfig, defaultConfig } from "./context.ts";
import { buildServer } from "./http/server.ts";
import { jobRoutes } from "./jobs/job-routes.ts";
import { evaluateLanes } from "./jobs/lane-loop.ts";
import { leaseRoutes } from "./jobs/lease-routes.ts";
import { sweep } from "./jobs/sweep.ts";
import { nodeRoutes } from "./nodes/node-routes.ts";
import { overviewRoutes } from "./overview-routes.ts";
import { WAKE_CHANNEL, WakeRelay } from "./wake-relay.ts";
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
};

export type Controller = AsyncDisposable & {
  /** Such as http://127.0.0.1:7440 */
  readonly url: string;
};

/** Returns when it listens and its loops run. Disposing ends long polls and streams, then closes; the database is the caller's. */
export async function startController(options: ControllerOptions): Promise<Controller> {
  const clock = systemClock;
  const random = systemRandom;
  const log = options.log;
  const context: Context = {
    db: options.db,
    config: { ...defaultConfig, ...options.config },
    clock,
    random,
    ids: idMaker(clock, random),
    log,
    wakeups: new Wakeups(clock),
  };
  const stopping = new AbortController();
  await using starting = new AsyncDisposableStack();
  const sweepMs = context.config.sweepMs;
  const lanes = starting.use(
    new Loop({ name: "lanes", periodMs: sweepMs, clock, log, round: () => evaluateLanes(context) }),
  );
  starting.use(new Loop({ name: "sweep", periodMs: sweepMs, clock, log, round: () => sweep(context) }));
  if (options.listenConnection !== undefined) relayWakes(context, options.listenConnection, starting);
  const handlers = {
    ...overviewRoutes(context),
    ...accessRoutes(context),
    ...nodeRoutes(context),
    ...jobRoutes(context),
    ...leaseRoutes(context, () => lanes.nudge()),
  };
  const server = buildServer({ context, handlers, stopping: stopping.signal });
  starting.defer(async () => {
    stopping.abort();
    await server.close();
  });
  const url = await openListener(server, options);
  log.info({ url }, "controller listens");
  const running = starting.move();
  return { url, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

function relayWakes(context: Context, connection: ConnectionOptions, stack: AsyncDisposableStack): void {
  const { db, wakeups, clock, random, log } = context;
  const sender = Buffer.from(random.bytes(9)).toString("base64url");
  const relay = stack.use(new WakeRelay({ db, wakeups, sender, clock, log }));
  stack.use(
    listen({
      connection,
      channels: [WAKE_CHANNEL],
      onNotification: (_channel, payload) => relay.receive(payload),
      // What was said while nobody listened is found by the poll.
      onListening: () => {},
      clock,
      random,
      log,
    }),
  );
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
