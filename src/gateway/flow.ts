// SPDX-License-Identifier: Apache-2.0
// One direction of a connection: what was read from one socket is written to the other, at the pace of the slower one. Rule: at
// most FLOW_BYTES_MAX wait here, whatever the two sides do; an idle direction has no buffer of its own.

import type net from "node:net";

const READ_BYTES = 64 * 1024;
/** Reading stops while as much waits to be written. */
const WAITING_BYTES_MAX = 64 * 1024;
/** What waits, and one read more. */
export const FLOW_BYTES_MAX = WAITING_BYTES_MAX + 2 * READ_BYTES;
/** Below it a copy costs less than a buffer of one's own. */
const SMALL_BYTES = 16 * 1024;

/** Every direction without much to do reads into it; what was read is copied out before anything else runs. */
const shared = Buffer.allocUnsafeSlow(READ_BYTES);

type FlowOptions = {
  /** Sees all bytes on their way; may not keep them. False: they must not go on. */
  readonly see: (bytes: Buffer) => boolean;
};

export class Flow {
  readonly #see: (bytes: Buffer) => boolean;
  #from: net.Socket | undefined;
  #to: net.Socket | undefined;
  /** Read before there was somewhere to write. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #own: Buffer | undefined;
  #isPaused = false;
  #isEnded = false;
  /** Bytes that were handed on. */
  passed = 0;

  constructor({ see }: FlowOptions) {
    this.#see = see;
  }

  /** For the socket that is read. */
  readonly onread = {
    buffer: (): Buffer => this.#own ?? shared,
    callback: (count: number, buffer: Uint8Array): boolean => this.#take(count, buffer),
  };

  /** Nothing came yet, of bytes or of an end. */
  get isUntouched(): boolean {
    return this.passed === 0 && this.#waitingBytes === 0 && !this.#isEnded;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Bytes in this process that were read and not taken by the kernel yet. */
  get waitingBytes(): number {
    return this.#waitingBytes + (this.#to?.writableLength ?? 0);
  }

  reads(from: net.Socket): void {
    this.#from = from;
    from.on("end", () => {
      this.#isEnded = true;
      this.#to?.end();
    });
  }

  /** Begins to write, first what waited. */
  writesTo(to: net.Socket): void {
    this.#to = to;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    for (const bytes of waiting) this.#write(bytes);
    if (this.#isEnded) to.end();
    else this.#goOn();
  }

  /** What is read waits again. */
  writesNowhere(): void {
    this.#to = undefined;
  }

  #take(count: number, buffer: Uint8Array): boolean {
    const isOwn = buffer === this.#own;
    const bytes = (isOwn ? this.#own : shared)?.subarray(0, count) ?? shared;
    if (!this.#see(bytes)) return true;
    if (this.#to === undefined) {
      this.#waiting.push(Buffer.from(bytes));
      this.#waitingBytes += count;
      this.#own = undefined;
      return this.#paused(this.#waitingBytes >= WAITING_BYTES_MAX);
    }
    this.#write(isOwn ? bytes : Buffer.from(bytes));
    const left = this.#to.writableLength;
    if (isOwn && left > 0) return this.#paused(true);
    if (count === READ_BYTES) this.#own ??= Buffer.allocUnsafeSlow(READ_BYTES);
    else if (count < SMALL_BYTES) this.#own = undefined;
    return this.#paused(left >= WAITING_BYTES_MAX);
  }

  #paused(isPaused: boolean): boolean {
    this.#isPaused = isPaused;
    return !isPaused;
  }

  #write(bytes: Buffer): void {
    this.passed += bytes.length;
    this.#to?.write(bytes, this.#goOn);
  }

  readonly #goOn = (): void => {
    if (!this.#isPaused || (this.#to?.writableLength ?? 0) > 0) return;
    this.#isPaused = false;
    this.#from?.resume();
  };
}
