// SPDX-License-Identifier: Apache-2.0
// LISTEN on a connection of its own, for ever: a lost one is replaced with backoff. Rule: notifications of the gap are gone,
// so whoever listens looks at everything again each time onListening is called.

import pg from "pg";
import { backoffMs } from "../std/backoff.ts";
import type { Clock } from "../std/clock.ts";
import { messageOf } from "../std/errors.ts";
import type { Log } from "../std/log.ts";
import type { Random } from "../std/random.ts";
import type { ConnectionOptions } from "./pool.ts";

export type ListenOptions = {
  readonly connection: ConnectionOptions;
  readonly channels: readonly string[];
  /** Must not throw: it is called from the socket. */
  readonly onNotification: (channel: string, payload: string) => void;
  /** Every channel is listened to from now on: at the start and after each new connection. Must not throw. */
  readonly onListening: () => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

const RETRY = { baseMs: 50, capMs: 5_000 };
const CONNECT_WITHIN_MS = 10_000;
/** A half-open connection never says goodbye. */
const END_WITHIN_MS = 1_000;

/** Starts at once and in the background; disposal ends the connection and waits for it. */
export function listen(options: ListenOptions): AsyncDisposable {
  const stop = new AbortController();
  const ended = keepListening(options, stop.signal);
  return {
    [Symbol.asyncDispose]: () => {
      stop.abort();
      return ended;
    },
  };
}

async function keepListening(options: ListenOptions, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await listenOnce(options, signal, () => (failures = 0));
    } catch (error) {
      if (!signal.aborted)
        options.log.warn({ error: messageOf(error) }, "the listening database connection was lost; another follows");
    }
    failures++;
    await options.clock.sleep(backoffMs(RETRY, failures, options.random), signal);
  }
}

/** Returns when asked to stop, throws when the connection ends. */
async function listenOnce(options: ListenOptions, signal: AbortSignal, onStarted: () => void): Promise<void> {
  const client = new pg.Client({
    ...options.connection,
    application_name: "holdfast listen",
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    keepAlive: true,
  });
  const over = Promise.withResolvers<void>();
  over.promise.catch(() => {});
  client.on("error", over.reject);
  client.on("notification", ({ channel, payload }) => options.onNotification(channel, payload ?? ""));
  const stop = (): void => over.resolve();
  signal.addEventListener("abort", stop, { once: true });
  const start = async (): Promise<void> => {
    await client.connect();
    await client.query(options.channels.map((channel) => `listen ${pg.escapeIdentifier(channel)}`).join("; "));
    if (signal.aborted) return;
    onStarted();
    options.onListening();
  };
  try {
    await Promise.race([over.promise, start()]);
    await over.promise;
  } finally {
    signal.removeEventListener("abort", stop);
    const done = new AbortController();
    await Promise.race([client.end().catch(() => {}), options.clock.sleep(END_WITHIN_MS, done.signal)]);
    done.abort();
  }
}
