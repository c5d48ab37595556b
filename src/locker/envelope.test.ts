// SPDX-License-Identifier: Apache-2.0
// The envelope's layout, field by field, and that it comes back whole.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { openEnvelope, RECORD_BYTES_MAX, sealEnvelope } from "./envelope.ts";

const fields = {
  fingerprint: new Uint8Array(32).fill(1),
  lineage: new Uint8Array(16).fill(2),
  nonce: new Uint8Array(32).fill(3),
  sequence: 0x0102030405060708n,
  parent: new Uint8Array(32).fill(4),
  record: Buffer.from("record"),
};

test("every field lies at its offset, big-endian, and the digest is SHA3-256 over all but itself", () => {
  const { bytes, digest } = sealEnvelope(fields);
  const hex = Buffer.from(bytes).toString("hex");
  const head = `${Buffer.from("hf-locker-1\n").toString("hex")}${"01".repeat(32)}${"02".repeat(16)}${"03".repeat(32)}0102030405060708${"04".repeat(32)}`;
  const wanted = createHash("sha3-256").update(Buffer.from(head, "hex")).update("record").digest("hex");
  assert.equal(hex, `${head}${wanted}${Buffer.from("record").toString("hex")}`);
  assert.equal(Buffer.from(digest).toString("hex"), wanted);
});

test("comes back whole, with an empty and with the largest record", () => {
  for (const record of [new Uint8Array(), fields.record, new Uint8Array(RECORD_BYTES_MAX)]) {
    const sealed = sealEnvelope({ ...fields, record, sequence: 2n ** 64n - 1n });
    const opened = openEnvelope(sealed.bytes);
    assert.ok(opened.kind === "envelope");
    for (const key of ["fingerprint", "lineage", "nonce", "parent", "digest", "record", "bytes"] as const)
      assert.equal(Buffer.compare(opened.envelope[key], sealed[key]), 0, key);
    assert.equal(opened.envelope.sequence, 2n ** 64n - 1n);
  }
  assert.throws(() => sealEnvelope({ ...fields, record: new Uint8Array(RECORD_BYTES_MAX + 1) }), /bug/);
});
