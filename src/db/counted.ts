// SPDX-License-Identifier: Apache-2.0
// A stream that passes everything on unchanged and knows how much it was: bytes, newlines, SHA-256.

import { createHash } from "node:crypto";
import { Transform, type TransformCallback } from "node:stream";

const NEWLINE = 10;

export class Counter extends Transform {
  readonly #hash = createHash("sha256");
  readonly #onBytes: (bytes: number) => void;
  sizeBytes = 0;
  newlines = 0;

  constructor(onBytes: (bytes: number) => void = () => {}) {
    super();
    this.#onBytes = onBytes;
  }

  override _transform(piece: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#hash.update(piece);
    this.sizeBytes += piece.length;
    for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, at + 1)) this.newlines++;
    this.#onBytes(piece.length);
    done(null, piece);
  }

  /** Of all that passed, in hexadecimal; once, at the end. */
  sha256(): string {
    return this.#hash.digest("hex");
  }
}
