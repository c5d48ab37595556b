// SPDX-License-Identifier: Apache-2.0
// Networks whose watermark this record overwrote: a Bloom filter of 1024 bytes with 7 probes, grow-only. It errs only by
// calling a network burned, which refuses a session and never runs a job. Layout and hash are on-disk format, pinned:
// probe i is the i-th 16-bit big-endian word of SHA3-256(network id), its low 13 bits a bit number, most significant bit first.

import { createHash } from "node:crypto";

export const BURNED_BYTES = 1024;
const PROBES = 7;

export const emptyBurned: Uint8Array = new Uint8Array(BURNED_BYTES);

function probesOf(network: Uint8Array): readonly { readonly byte: number; readonly mask: number }[] {
  const hash = createHash("sha3-256").update(network).digest();
  return Array.from({ length: PROBES }, (_, index) => {
    const bit = hash.readUInt16BE(index * 2) & (BURNED_BYTES * 8 - 1);
    return { byte: bit >> 3, mask: 0x80 >> (bit & 7) };
  });
}

export function isBurned(burned: Uint8Array, network: Uint8Array): boolean {
  return probesOf(network).every(({ byte, mask }) => ((burned[byte] ?? 0) & mask) !== 0);
}

export function withBurned(burned: Uint8Array, network: Uint8Array): Uint8Array {
  const next = Uint8Array.from(burned);
  for (const { byte, mask } of probesOf(network)) next[byte] = (next[byte] ?? 0) | mask;
  return next;
}
