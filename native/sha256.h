/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of a stream that comes in pieces. Source: FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1, 5.3.3 and 6.2.
   Rule: it keeps nothing of the stream but the state and less than one block. */

#ifndef HOLDFAST_SHA256_H
#define HOLDFAST_SHA256_H

#include "text.h"

enum { BLOCK_BYTES = 64 };

struct sha256 {
  u64 length; /* bytes so far */
  u32 state[8];
  unsigned char block[BLOCK_BYTES];
};

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const u32 sha256_constants[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
  0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
  0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
  0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
  0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
  0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline u32 rotated(u32 word, int by) { return word >> by | word << (32 - by); }

static void sha256_begin(struct sha256 *hash) {
  /* The same of the square roots of the first 8 primes. */
  static const u32 start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  hash->length = 0;
  memcpy(hash->state, start, sizeof start);
}

static void sha256_block(u32 *state, const unsigned char *block) {
  u32 w[64], v[8];
  for (int t = 0; t < 16; t++, block += 4) w[t] = (u32)block[0] << 24 | (u32)block[1] << 16 | (u32)block[2] << 8 | block[3];
  for (int t = 16; t < 64; t++) {
    u32 a = w[t - 15], b = w[t - 2];
    w[t] = (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10) + w[t - 7] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[t - 16];
  }
  memcpy(v, state, sizeof v);
  for (int t = 0; t < 64; t++) {
    u32 first = v[7] + (rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
                sha256_constants[t] + w[t];
    u32 second = (rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    v[7] = v[6], v[6] = v[5], v[5] = v[4], v[4] = v[3] + first, v[3] = v[2], v[2] = v[1], v[1] = v[0], v[0] = first + second;
  }
  for (int i = 0; i < 8; i++) state[i] += v[i];
}

static void sha256_add(struct sha256 *hash, const char *bytes, u64 count) {
  u64 have = hash->length % BLOCK_BYTES;
  hash->length += count;
  while (count > 0) {
    if (have == 0 && count >= BLOCK_BYTES) {
      sha256_block(hash->state, (const unsigned char *)bytes);
      bytes += BLOCK_BYTES, count -= BLOCK_BYTES;
      continue;
    }
    u64 part = BLOCK_BYTES - have < count ? BLOCK_BYTES - have : count;
    memcpy(hash->block + have, bytes, part);
    bytes += part, count -= part, have += part;
    if (have == BLOCK_BYTES) sha256_block(hash->state, hash->block), have = 0;
  }
}

/* Ends the hash and appends it as 64 hexadecimal digits. */
static void sha256_end(struct sha256 *hash, struct text *to) {
  char tail[8];
  u64 bits = hash->length * 8;
  sha256_add(hash, "\x80", 1);
  while (hash->length % BLOCK_BYTES != BLOCK_BYTES - 8) sha256_add(hash, "", 1);
  for (int i = 0; i < 8; i++) tail[i] = (char)(bits >> (56 - 8 * i));
  sha256_add(hash, tail, 8);
  for (int i = 0; i < 64; i++) put(to, &"0123456789abcdef"[hash->state[i / 8] >> (28 - 4 * (i % 8)) & 15], 1);
}

#endif
