// SPDX-License-Identifier: Apache-2.0
// LISTEN on a connection of its own, for ever: a lost one is replaced with backoff. Rule: notifications of the gap are gone,
// so whoever listens looks at everything again each time onListening is called. A half-open connection is deaf without an
// error: whoever listens proves that it hears, and replaces it when it does not.

import net from "node:net";
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

export type Listening = AsyncDisposable & {
  /** Gives up the connection that listens now, with the reason for the log; one that is being opened is left alone. */
  replace(reason: string): void;
};

/** What replace ends; undefined while nothing listens. */
type Current = { giveUp: ((reason: Error) => void) | undefined };

/** Starts at once and in the background; disposal ends the connection and waits for it. */
export function listen(options: ListenOptions): Listening {
  const stop = new AbortController();
  const current: Current = { giveUp: undefined };
  const ended = keepListening(options, current, stop.signal);
  return {
    replace: (reason) => current.giveUp?.(new Error(reason)),
    [Symbol.asyncDispose]: () => {
      stop.abort();
      return ended;
    },
  };
}

async function keepListening(options: ListenOptions, current: Current, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await listenOnce(options, signal, (giveUp) => {
        failures = 0;
        current.giveUp = giveUp;
      });
    } catch (error) {
      if (!signal.aborted)
        options.log.warn({ error: messageOf(error) }, "the listening database connection was lost; another follows");
    } finally {
      current.giveUp = undefined;
    }
    failures++;
    await options.clock.sleep(backoffMs(RETRY, failures, options.random), signal);
  }
}

/** Returns when asked to stop, throws when the connection ends. */
async function listenOnce(
  options: ListenOptions,
  signal: AbortSignal,
  onStarted: (giveUp: (reason: Error) => void) => void,
): Promise<void> {
  const socket = new net.Socket();
  const client = new pg.Client({
    ...options.connection,
    application_name: "holdfast listen",
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    query_timeout: CONNECT_WITHIN_MS,
    keepAlive: true,
    stream: () => socket,
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
    onStarted((reason) => {
      over.reject(reason);
      // Without a goodbye: a deaf one would not hear it.
      socket.destroy();
    });
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
    // What did not end by then would stay open for as long as the other side is silent.
    socket.destroy();
  }
}
