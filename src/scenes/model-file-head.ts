// SPDX-License-Identifier: Apache-2.0
// Reads the head of a file of weights in order, a piece at a time. Rules: what the file does not have is CutOff, never zeros;
// of a file of any size no more than a bound is read, and what is skipped is not read at all.

import fs from "node:fs";

const PIECE_BYTES = 256 * 1024;
/** The largest vocabularies that are known take a tenth of it. */
const READ_BYTES_MAX = 128 * 1024 * 1024;

/** The file ends before its head does. */
export class CutOff extends Error {
  /** The head goes on to here, at least. */
  readonly endBytes: number;

  constructor(endBytes: number) {
    super(`the head goes on to byte ${endBytes}`);
    this.endBytes = endBytes;
  }
}

/** What is there is no head that a model can have. */
export class BadHead extends Error {}

export class FileHead {
  readonly #fd: number;
  readonly sizeBytes: number;
  #piece = Buffer.alloc(0);
  #pieceAt = 0;
  #at = 0;
  #readBytes = 0;

  constructor(fd: number, sizeBytes: number) {
    this.#fd = fd;
    this.sizeBytes = sizeBytes;
  }

  /** Where the next read begins. */
  get at(): number {
    return this.#at;
  }

  skip(bytes: number): void {
    const end = this.#at + bytes;
    if (!Number.isSafeInteger(end)) throw new BadHead(`it claims ${bytes} bytes at byte ${this.#at}`);
    if (end > this.sizeBytes) throw new CutOff(end);
    this.#at = end;
  }

  u32(): number {
    return this.#take(4).readUInt32LE();
  }

  u64(): number {
    const bytes = this.#take(8);
    const value = bytes.readUInt32LE(4) * 2 ** 32 + bytes.readUInt32LE(0);
    if (!Number.isSafeInteger(value)) throw new BadHead(`it has the number ${value} before byte ${this.#at}`);
    return value;
  }

  text(bytes: number): string {
    return this.#take(bytes).toString("utf8");
  }

  #take(bytes: number): Buffer {
    const from = this.#at;
    this.skip(bytes);
    if (from < this.#pieceAt || this.#at > this.#pieceAt + this.#piece.length) this.#read(from, bytes);
    return this.#piece.subarray(from - this.#pieceAt, this.#at - this.#pieceAt);
  }

  #read(from: number, bytes: number): void {
    this.#readBytes += Math.max(bytes, PIECE_BYTES);
    if (this.#readBytes > READ_BYTES_MAX) throw new BadHead(`its head has more than ${READ_BYTES_MAX} bytes`);
    const piece = Buffer.allocUnsafe(Math.max(bytes, PIECE_BYTES));
    let length = 0;
    while (length < piece.length) {
      const count = fs.readSync(this.#fd, piece, length, piece.length - length, from + length);
      if (count === 0) break;
      length += count;
    }
    // Cut while it is read.
    if (length < bytes) throw new CutOff(from + bytes);
    this.#piece = piece.subarray(0, length);
    this.#pieceAt = from;
  }
}
