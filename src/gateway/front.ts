// SPDX-License-Identifier: Apache-2.0
// One address that apps use. What becomes of a new connection is decided here, from the target that was told and the proof:
// served by the current upstream, held until it is proved, or refused. Rule: a connection is handed to an upstream only when its
// proof holds before it connects and after it has; a hold ends by release, by its limit, or because the client left.

import net from "node:net";
import type { Clock } from "../std/clock.ts";
import { codeOf, messageOf } from "../std/errors.ts";
import { describeProcess, holderOf, listListeners, reachedBy } from "../std/listeners.ts";
import type { Log } from "../std/log.ts";
import type { Random } from "../std/random.ts";
import { Backend } from "./backend.ts";
import { Connection, type ConnectionEvents, SOCKET_OPTIONS } from "./connection.ts";
import { Counters, type CountersSeen, type Refusal } from "./counters.ts";
import type { ProofState } from "./proof.ts";
import { addressText, DRAIN_MS, type Front, type Target, type Upstream } from "./table.ts";

/** Connections that wait at once; one more is refused. */
export const HELD_MAX = 1024;
/** Then a held connection is refused: whoever waits longer has given up. */
export const HELD_MS_MAX = 600_000;
const BACKLOG = 4096;
/** Of a 503: switches take seconds. */
const RETRY_AFTER_SECONDS = 5;

export type FrontOptions = {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly heldMax?: number;
  readonly heldMsMax?: number;
  readonly markerEveryMs?: number;
  readonly probeWithinMs?: number;
};

export type FrontSeen = {
  readonly listen: string;
  /** Why its port is not listened on; null: it is. */
  readonly listenError: string | null;
  readonly target: Target;
  /** Of the upstream; null when there is none. */
  readonly proof: ProofState | null;
  readonly draining: readonly { readonly model: string; readonly connections: number }[];
  readonly counters: CountersSeen;
};

export class RunningFront {
  readonly listen: string;
  readonly counters = new Counters();
  readonly #options: FrontOptions;
  readonly #events: ConnectionEvents;
  readonly #connections = new Map<Connection, Backend | undefined>();
  /** In the order in which they came. */
  readonly #held = new Map<Connection, number>();
  readonly #draining = new Set<Backend>();
  #server: net.Server | undefined;
  #listenError: string | null = "not listening yet";
  #current: Backend | undefined;
  #wanted: Front;
  #heldTimer: NodeJS.Timeout | undefined;
  #lastRefusal = "";
  #isClosing = false;
  readonly #closed = Promise.withResolvers<undefined>();

  constructor(wanted: Front, options: FrontOptions) {
    this.#wanted = wanted;
    this.#options = options;
    this.listen = addressText(wanted.listen);
    this.#events = {
      monotonicMs: () => options.clock.monotonicMs(),
      onBytes: (fromClient, fromUpstream) => {
        this.counters.bytesFromClients += fromClient;
        this.counters.bytesFromUpstream += fromUpstream;
      },
      onConnected: (connection, tookMs) => this.#onConnected(connection, tookMs),
      onConnectFailed: (connection, error) => this.#onConnectFailed(connection, error),
      onClosed: (connection) => this.#onClosed(connection),
    };
    this.apply(wanted);
  }

  /** Starts to listen; where that fails, listenError says why. May be called again then. */
  async start(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = net.createServer({ pauseOnConnect: true, ...SOCKET_OPTIONS }, (accepted) => this.#accept(accepted));
    const { host, port } = this.#wanted.listen;
    this.#listenError = await new Promise<string | null>((resolve) => {
      server.once("error", (error) => resolve(listenFault(host, port, error)));
      server.listen({ host, port, backlog: BACKLOG, exclusive: true }, () => resolve(null));
    });
    if (this.#listenError !== null) return;
    server.removeAllListeners("error").on("error", (error) => {
      this.#options.log.warn({ listen: this.listen, error: messageOf(error) }, "a connection could not be accepted");
    });
    this.#server = server;
  }

  get listenError(): string | null {
    return this.#listenError;
  }

  /** Takes a new target for the same address. */
  apply(wanted: Front): void {
    this.#wanted = wanted;
    const { target, drainMs = DRAIN_MS } = wanted;
    const upstream = target.kind === "serving" ? target.upstream : undefined;
    if (upstream !== undefined && this.#current?.is(upstream) === true) return this.#current.proof.nudge();
    const former = this.#current;
    this.#current = upstream === undefined ? undefined : this.#backendFor(upstream);
    if (former !== undefined) this.#drain(former, drainMs);
    if (target.kind === "refusing")
      for (const connection of this.#held.keys()) this.#refuse(connection, "refusing", target.why);
    this.#release();
  }

  seen(): FrontSeen {
    return {
      listen: this.listen,
      listenError: this.#listenError,
      target: this.#wanted.target,
      proof: this.#current?.proof.state ?? null,
      draining: [...this.#draining].map(({ upstream, connections }) => ({
        model: upstream.model,
        connections: connections.size,
      })),
      counters: this.counters.seen(),
    };
  }

  get isProved(): boolean {
    return this.#current?.proof.state.kind === "proved";
  }

  /** Bytes that were read and that no kernel has taken yet, of all connections. */
  get waitingBytes(): number {
    return [...this.#connections.keys()].reduce((sum, { waitingBytes }) => sum + waitingBytes, 0);
  }

  /** No new connections; those that are there drain. Resolves when the last one is gone. Once more: with another drain. */
  close(drainMs: number): Promise<undefined> {
    this.#server?.close();
    this.#server = undefined;
    this.#listenError = "closed";
    this.#isClosing = true;
    const why = "the gateway stops";
    this.#wanted = { ...this.#wanted, target: { kind: "refusing", why } };
    for (const connection of this.#held.keys()) this.#refuse(connection, "stopping", why);
    if (this.#current !== undefined) this.#draining.add(this.#current);
    this.#current = undefined;
    for (const backend of this.#draining) this.#drain(backend, drainMs);
    this.#settle();
    return this.#closed.promise;
  }

  #accept(accepted: net.Socket): void {
    const connection = new Connection(accepted, this.#events);
    this.counters.total++;
    this.counters.open++;
    this.#connections.set(connection, undefined);
    this.#place(connection);
  }

  /** What becomes of a connection that has no upstream. */
  #place(connection: Connection): void {
    const { target } = this.#wanted;
    const backend = this.#current;
    if (target.kind === "refusing") return this.#refuse(connection, "refusing", target.why);
    if (backend === undefined || backend.proof.state.kind === "pending") return this.#hold(connection);
    if (backend.proof.isProvedNow()) return this.#connect(connection, backend);
    const { state } = backend.proof;
    this.#refuse(connection, "unproved", "why" in state ? state.why : "");
  }

  #connect(connection: Connection, backend: Backend): void {
    this.#connections.set(connection, backend);
    backend.connections.add(connection);
    connection.connect(backend.upstream.address);
  }

  #hold(connection: Connection): void {
    const { heldMax = HELD_MAX, heldMsMax = HELD_MS_MAX, clock } = this.#options;
    if (this.#held.size >= heldMax)
      return this.#refuse(connection, "holding-full", `${heldMax} connections wait already`);
    this.#held.set(connection, clock.monotonicMs());
    this.counters.held++;
    this.counters.heldTotal++;
    this.#heldTimer ??= setTimeout(() => this.#endHolds(), heldMsMax);
  }

  #unhold(connection: Connection): void {
    if (!this.#held.delete(connection)) return;
    this.counters.held--;
    if (this.#held.size > 0) return;
    clearTimeout(this.#heldTimer);
    this.#heldTimer = undefined;
  }

  /** Of those that have waited too long; the next look is when the oldest of the others has. */
  #endHolds(): void {
    const { heldMsMax = HELD_MS_MAX, clock } = this.#options;
    this.#heldTimer = undefined;
    const now = clock.monotonicMs();
    for (const [connection, since] of this.#held) {
      if (now - since < heldMsMax - 1) {
        this.#heldTimer = setTimeout(() => this.#endHolds(), heldMsMax - (now - since));
        return;
      }
      this.#refuse(connection, "held-too-long", `it has waited for ${Math.round(heldMsMax / 1000)} s`);
    }
  }

  #release(): void {
    const backend = this.#current;
    if (backend === undefined) return;
    for (const connection of this.#held.keys()) {
      if (!backend.proof.isProvedNow()) return;
      this.#unhold(connection);
      this.#connect(connection, backend);
    }
  }

  #backendFor(upstream: Upstream): Backend {
    const former = [...this.#draining].find((backend) => backend.is(upstream));
    if (former !== undefined) {
      this.#draining.delete(former);
      former.keep();
      return former;
    }
    const { clock, random, log, markerEveryMs, probeWithinMs } = this.#options;
    const backend: Backend = new Backend(
      {
        upstream,
        clock,
        random,
        ...(markerEveryMs === undefined ? {} : { markerEveryMs }),
        ...(probeWithinMs === undefined ? {} : { probeWithinMs }),
        onChange: (state) => {
          const fields = { listen: this.listen, model: upstream.model, ...state };
          // A former one may well end.
          if (backend !== this.#current) return;
          if (state.kind === "failed") log.warn(fields, "the upstream is not proved to be its model: refusing");
          else log.info(fields, "the upstream is proved to be its model");
          this.#release();
        },
      },
      this.counters,
    );
    return backend;
  }

  #drain(backend: Backend, drainMs: number): void {
    this.#draining.add(backend);
    const unused = backend.drain(drainMs, () => void this.#draining.delete(backend));
    for (const connection of unused) {
      this.#connections.set(connection, undefined);
      this.#place(connection);
    }
  }

  #onConnected(connection: Connection, tookMs: number): void {
    this.counters.countConnect(tookMs);
    const backend = this.#connections.get(connection);
    // Between the look before and the connection the model may have died, and somebody may have taken its port.
    if (backend !== undefined && backend === this.#current && backend.proof.isProvedNow()) return connection.open();
    this.#leave(connection);
    connection.giveBack();
    this.#place(connection);
  }

  #onConnectFailed(connection: Connection, error: Error): void {
    this.#leave(connection);
    connection.giveBack();
    this.#refuse(connection, "connect-failed", messageOf(error));
  }

  #leave(connection: Connection): void {
    this.#connections.get(connection)?.leave(connection);
    this.#connections.set(connection, undefined);
  }

  #refuse(connection: Connection, reason: Refusal, why: string): void {
    this.#unhold(connection);
    this.counters.refused[reason]++;
    // Once, until there is another reason: each single one is in the counters.
    if (this.#lastRefusal !== why) this.#options.log.info({ listen: this.listen, reason, why }, "refusing connections");
    this.#lastRefusal = why;
    if (this.#wanted.httpStatus === true) connection.answer(serviceUnavailable(why));
    else connection.reset();
  }

  #onClosed(connection: Connection): void {
    this.#unhold(connection);
    this.#connections.get(connection)?.leave(connection);
    this.#connections.delete(connection);
    this.counters.open--;
    this.#settle();
  }

  #settle(): void {
    if (this.#isClosing && this.#connections.size === 0) this.#closed.resolve(undefined);
  }
}

function serviceUnavailable(why: string): string {
  const body = `${why.replaceAll(/[^\x20-\x7e]/g, "?")}\n`;
  return [
    "HTTP/1.1 503 Service Unavailable",
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${body.length}`,
    `Retry-After: ${RETRY_AFTER_SECONDS}`,
    "Connection: close",
    "",
    body,
  ].join("\r\n");
}

function listenFault(host: string, port: number, error: Error): string {
  if (codeOf(error) !== "EADDRINUSE") return messageOf(error);
  const inodes = new Set(reachedBy(listListeners(), host, port).map(({ inode }) => inode));
  const pid = inodes.size === 0 ? undefined : holderOf(inodes);
  return `${addressText({ host, port })} is held by ${pid === undefined ? "another process" : describeProcess(pid)}`;
}
