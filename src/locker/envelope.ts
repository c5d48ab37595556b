// SPDX-License-Identifier: Apache-2.0
// The envelope around a record in a slot, big-endian: magic 12 · key fingerprint 32 · lineage 16 · nonce 32 · sequence 8 ·
// parent 32 · digest 32 · record. The digest is SHA3-256 over all that stands before it and the record. On-disk format:
// pinned by tests/golden; it never changes, a new one gets another magic.

import { createHash } from "node:crypto";

export const RECORD_BYTES_MAX = 256 * 1024;

const MAGIC = Buffer.from("hf-locker-1\n", "latin1");
const AT = { fingerprint: 12, lineage: 44, nonce: 60, sequence: 92, parent: 100, digest: 132, record: 164 } as const;

export type Envelope = {
  /** SHA-256 of the node's public key: another machine's slot is foreign. */
  readonly fingerprint: Uint8Array;
  /** Drawn when the tenant is first written or reset. */
  readonly lineage: Uint8Array;
  /** Drawn once in the life of a process. */
  readonly nonce: Uint8Array;
  readonly sequence: bigint;
  /** Digest of the envelope that this one replaces; zeros for the first. */
  readonly parent: Uint8Array;
  readonly digest: Uint8Array;
  readonly record: Uint8Array;
  /** All of it, as it lies in a slot. */
  readonly bytes: Uint8Array;
};

export type NewEnvelope = Omit<Envelope, "digest" | "bytes">;

export const NO_PARENT: Uint8Array = new Uint8Array(32);

export function sealEnvelope(envelope: NewEnvelope): Envelope {
  const { fingerprint, lineage, nonce, sequence, parent, record } = envelope;
  if (record.length > RECORD_BYTES_MAX) throw new Error(`bug: a record of ${record.length} bytes`);
  const head = Buffer.alloc(AT.digest);
  MAGIC.copy(head);
  head.set(fingerprint, AT.fingerprint);
  head.set(lineage, AT.lineage);
  head.set(nonce, AT.nonce);
  head.writeBigUInt64BE(sequence, AT.sequence);
  head.set(parent, AT.parent);
  const digest = digestOf(head, record);
  return { ...envelope, digest, bytes: Buffer.concat([head, digest, record]) };
}

function digestOf(head: Uint8Array, record: Uint8Array): Buffer {
  return createHash("sha3-256").update(head).update(record).digest();
}

export type Opened =
  | { readonly kind: "envelope"; readonly envelope: Envelope }
  /** why: what an operator is told. */
  | { readonly kind: "corrupt"; readonly why: string };

export function openEnvelope(bytes: Uint8Array): Opened {
  if (bytes.length < AT.record) return { kind: "corrupt", why: `it has ${bytes.length} bytes, fewer than an envelope` };
  if (bytes.length > AT.record + RECORD_BYTES_MAX)
    return { kind: "corrupt", why: `it has ${bytes.length} bytes, more than an envelope` };
  const part = (from: number, to: number): Uint8Array => Uint8Array.prototype.slice.call(bytes, from, to);
  if (!MAGIC.equals(part(0, 12))) return { kind: "corrupt", why: "it does not begin as an envelope does" };
  const record = part(AT.record, bytes.length);
  const digest = part(AT.digest, AT.record);
  if (!digestOf(part(0, AT.digest), record).equals(digest))
    return { kind: "corrupt", why: "its digest does not fit its content" };
  return {
    kind: "envelope",
    envelope: {
      fingerprint: part(AT.fingerprint, AT.lineage),
      lineage: part(AT.lineage, AT.nonce),
      nonce: part(AT.nonce, AT.sequence),
      sequence: Buffer.from(part(AT.sequence, AT.parent)).readBigUInt64BE(),
      parent: part(AT.parent, AT.digest),
      digest,
      record,
      bytes: part(0, bytes.length),
    },
  };
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
