// SPDX-License-Identifier: Apache-2.0
// Many bytes that are different all along, so that a piece that is lost, doubled or moved shows.

import { createHash } from "node:crypto";

/** The same bytes for the same length, different all along. */
export function* patternOf(bytes: number): Generator<Buffer> {
  for (let at = 0, block = 0; at < bytes; block++) {
    const piece = Buffer.alloc(Math.min(65_536, bytes - at));
    for (let index = 0; index < piece.length; index++) piece[index] = (block * 31 + index * 7 + (index >> 8)) & 0xff;
    at += piece.length;
    yield piece;
  }
}

export function patternHash(bytes: number): string {
  const hash = createHash("sha256");
  for (const piece of patternOf(bytes)) hash.update(piece);
  return hash.digest("hex");
}
