// SPDX-License-Identifier: Apache-2.0
// Format 1 of the boundary's record and of the locker's envelope as shipped, byte by byte, and the shape that they have. Where
// one of these fails, stop: docs/checklists/format-change.md. The files are never written again.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { boundaryFormat } from "../../src/boundary/record.ts";
import { openEnvelope, sealEnvelope } from "../../src/locker/envelope.ts";
import { judge } from "../../src/locker/judge.ts";
import { goldenEnvelope, goldenRecord } from "./golden-record.ts";

const file = (name: string): Buffer => fs.readFileSync(new URL(`../golden/boundary-1/${name}`, import.meta.url));
const STOP = "a shipped format has changed: stop, and follow docs/checklists/format-change.md";

test("P13: the record in format 1 decodes to the same value and encodes to the same bytes for ever", () => {
  const decoded = boundaryFormat.decode(file("record.cbor"));
  assert.ok(decoded.kind === "ok", STOP);
  assert.deepEqual(decoded.body, goldenRecord, STOP);
  assert.equal(
    Buffer.from(boundaryFormat.encode(goldenRecord, 1)).toString("hex"),
    file("record.cbor").toString("hex"),
    STOP,
  );
});

test("P13: the envelope around it is read and written byte by byte", () => {
  const sealed = sealEnvelope({ ...goldenEnvelope, record: file("record.cbor") });
  assert.equal(Buffer.from(sealed.bytes).toString("hex"), file("envelope").toString("hex"), STOP);
  const opened = openEnvelope(file("envelope"));
  assert.ok(opened.kind === "envelope", STOP);
  assert.equal(opened.envelope.sequence, goldenEnvelope.sequence);
  assert.equal(judge([{ kind: "bytes", bytes: file("envelope") }], goldenEnvelope.fingerprint).kind, "adopt");
});

test("P13: the shape of every version of the record is the one that was shipped under its number", () => {
  assert.equal(`${boundaryFormat.description}\n`, file("shape.txt").toString(), STOP);
});
