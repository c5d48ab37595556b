// SPDX-License-Identifier: Apache-2.0
// One client's connection and the upstream connection behind it, byte for byte:
//   waiting ──connect──► connecting ──upstream accepted──► connected ──open──► open ──► closed
//      ▲──────────────────────┴───────────────unused───────────┴──────────────┘
// Rule: an abort of one side reaches the other as an abort (RST), an end as an end (FIN); nothing is sent on before open.

import net from "node:net";
import { Flow } from "./flow.ts";
import { Framing } from "./framing.ts";
import type { Address } from "./table.ts";

const KEEP_ALIVE_AFTER_MS = 60_000;
/** After our end: as long may a client take to close its side. */
const CLOSE_WITHIN_MS = 2_000;

export const SOCKET_OPTIONS = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS,
} as const;

type Stage = "waiting" | "connecting" | "connected" | "open" | "closing" | "closed";

export type ConnectionEvents = {
  /** The upstream took the connection; nothing was sent to it yet. */
  readonly onConnected: (connection: Connection, tookMs: number) => void;
  readonly onConnectFailed: (connection: Connection, error: Error) => void;
  /** Both sides are gone. */
  readonly onClosed: (connection: Connection) => void;
  readonly onBytes: (fromClient: number, fromUpstream: number) => void;
  readonly monotonicMs: () => number;
};

export class Connection {
  readonly #events: ConnectionEvents;
  readonly #client: net.Socket;
  readonly #framing = new Framing();
  readonly #up = new Flow({ see: (bytes) => this.#seeRequest(bytes) });
  #down = this.#newDown();
  #upstream: net.Socket | undefined;
  #stage: Stage = "waiting";
  #isDraining = false;
  #closeTimer: NodeJS.Timeout | undefined;

  /** accepted: of a server with pauseOnConnect and SOCKET_OPTIONS. */
  constructor(accepted: net.Socket, events: ConnectionEvents) {
    this.#events = events;
    this.#client = takeOver(accepted, this.#up.onread);
    this.#up.reads(this.#client);
    this.#client.on("end", () => this.#onClientEnd());
    this.#client.on("error", () => this.#resetUpstream());
    this.#client.on("close", () => this.#onClosed());
  }

  get stage(): Stage {
    return this.#stage;
  }

  /** No byte and no end went either way: another upstream can take its place, and nobody can tell. */
  get isUnused(): boolean {
    return this.#stage === "connecting" || this.#stage === "connected" || (this.#stage === "open" && this.#isUntouched);
  }

  /** Every request that it carried is answered. */
  get isIdle(): boolean {
    return this.#stage === "open" && !this.#isUntouched && this.#framing.isIdle;
  }

  get waitingBytes(): number {
    return this.#up.waitingBytes + this.#down.waitingBytes;
  }

  connect({ host, port }: Address): void {
    this.#stage = "connecting";
    const began = this.#events.monotonicMs();
    this.#down = this.#newDown();
    const upstream = net.connect({ host, port, ...SOCKET_OPTIONS, onread: this.#down.onread });
    this.#upstream = upstream;
    this.#down.reads(upstream);
    upstream.once("connect", () => {
      if (this.#upstream !== upstream) return;
      this.#stage = "connected";
      this.#events.onConnected(this, this.#events.monotonicMs() - began);
    });
    upstream.on("error", (error) => {
      if (this.#upstream !== upstream) return;
      if (this.#stage === "connecting") this.#events.onConnectFailed(this, error);
      else reset(this.#client);
    });
    upstream.on("close", () => {
      if (this.#upstream === upstream) this.#onClosed();
    });
  }

  /** Lets the bytes flow. */
  open(): void {
    const upstream = this.#upstream;
    if (this.#stage !== "connected" || upstream === undefined) return;
    this.#stage = "open";
    this.#up.writesTo(upstream);
    this.#down.writesTo(this.#client);
  }

  /** Gives an unused upstream connection up; the client waits again. */
  giveBack(): void {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    this.#up.writesNowhere();
    this.#stage = "waiting";
    if (upstream !== undefined) reset(upstream);
  }

  /** The upstream is not to be used any longer: closed as soon as everything is answered. */
  drain(): void {
    this.#isDraining = true;
    if (this.isIdle) this.#close();
  }

  /** The upstream is the right one after all. */
  keep(): void {
    this.#isDraining = false;
  }

  /** Both sides, at once. */
  reset(): void {
    this.#resetUpstream();
    reset(this.#client);
  }

  /** Answers and closes, without an upstream. */
  answer(text: string): void {
    this.#stage = "closing";
    this.#client.end(text, "latin1");
    this.#closeSoon();
  }

  get #isUntouched(): boolean {
    return this.#up.isUntouched && this.#down.isUntouched;
  }

  #newDown(): Flow {
    return new Flow({ see: (bytes) => this.#seeAnswer(bytes) });
  }

  #seeRequest(bytes: Buffer): boolean {
    if (this.#stage === "closing") {
      // A request that crossed our end: it was never taken, and the client may send it again.
      if (this.#upstream !== undefined) reset(this.#client);
      return false;
    }
    this.#events.onBytes(bytes.length, 0);
    this.#framing.seeRequest(bytes);
    return true;
  }

  #seeAnswer(bytes: Buffer): boolean {
    if (this.#stage === "closing") return false;
    this.#events.onBytes(0, bytes.length);
    this.#framing.seeAnswer(bytes);
    // After this read was written.
    if (this.#isDraining && this.#framing.isIdle) process.nextTick(() => this.#isDraining && this.drain());
    return true;
  }

  #onClientEnd(): void {
    const isGone = this.#stage === "waiting" && !(this.#framing.isOpaque && this.#up.waitingBytes > 0);
    if (isGone || this.#stage === "closing") this.#client.destroy();
  }

  #close(): void {
    this.#stage = "closing";
    this.#client.end();
    this.#upstream?.end();
    this.#closeSoon();
  }

  #closeSoon(): void {
    this.#closeTimer = setTimeout(() => this.reset(), CLOSE_WITHIN_MS);
  }

  #resetUpstream(): void {
    if (this.#upstream !== undefined) reset(this.#upstream);
  }

  #onClosed(): void {
    if (this.#stage === "closed" || !this.#client.closed) return;
    if (this.#upstream !== undefined && !this.#upstream.closed) {
      if (this.#stage !== "open") reset(this.#upstream);
      return;
    }
    this.#stage = "closed";
    clearTimeout(this.#closeTimer);
    this.#events.onClosed(this);
  }
}

/** RST. Node cannot reset while an end waits to be written; then the kernel does, if anything was left unread. */
function reset(socket: net.Socket): void {
  if (socket.destroyed) return;
  if (socket.connecting || (socket.writableEnded && !socket.writableFinished)) socket.destroy();
  else socket.resetAndDestroy();
}

const HANDLE = "_handle";

/**
 * The same connection as a socket that reads into a given buffer, which Node offers for net.connect but not for what a server
 * accepts. By a member that is not documented, but that Node's own cluster module relies on in the same way.
 */
function takeOver(accepted: net.Socket, onread: Flow["onread"]): net.Socket {
  const holder = accepted as unknown as { [HANDLE]: unknown };
  const handle = holder[HANDLE];
  holder[HANDLE] = null;
  accepted.destroy();
  const options = { handle, allowHalfOpen: true, onread };
  return new net.Socket(options as net.SocketConstructorOpts);
}
