// SPDX-License-Identifier: Apache-2.0
// The record of tests/golden/boundary-1: a value in every field, so that the pinned bytes show where each of them lies.

import { withBurned } from "../../src/boundary/burned.ts";
import { type BoundaryRecord, emptyRecord } from "../../src/boundary/record.ts";
import { type NewEnvelope } from "../../src/locker/envelope.ts";

const id = (length: number, byte: number): Uint8Array => new Uint8Array(length).fill(byte);

const identity = {
  bootId: "6b1a8e9c-0f3d-4c55-9d7e-2a1b3c4d5e6f",
  pid: 4_194_303,
  startTicks: 18_446_744_073_709_551_615n,
  pidfdInode: "9007199254740993",
};

export const goldenRecord: BoundaryRecord = {
  network: id(16, 0x11),
  burned: [id(16, 0x21), id(16, 0x22)].reduce(withBurned, emptyRecord.burned),
  executed: [id(32, 0x31), id(32, 0x32)],
  sessions: [
    {
      network: id(16, 0x11),
      session: id(32, 0x41),
      start: id(32, 0x31),
      head: id(32, 0x51),
      successor: id(32, 0x52),
      handled: [id(32, 0x50), id(32, 0x51)],
      entries: [
        { job: id(32, 0x50), launchId: "session-50", identity, stage: "ended", outcome: "exited" },
        { job: id(32, 0x51), launchId: "session-51", identity: null, stage: "released", outcome: "" },
      ],
    },
    {
      network: id(16, 0x21),
      session: id(32, 0x42),
      start: id(32, 0x32),
      head: null,
      successor: id(32, 0x61),
      handled: [],
      entries: [],
    },
  ],
  attempts: [
    {
      jobId: "job_01k0000000000000000000000a",
      epoch: 1n,
      launchId: "attempt-a-1",
      identity,
      stage: "released",
      outcome: "",
    },
    {
      jobId: "job_01k0000000000000000000000b",
      epoch: 18_446_744_073_709_551_615n,
      launchId: "attempt-b-18446744073709551615",
      identity: { ...identity, pidfdInode: "" },
      stage: "ended",
      outcome: "interrupted",
    },
  ],
};

export const goldenEnvelope: Omit<NewEnvelope, "record"> = {
  fingerprint: id(32, 0x01),
  lineage: id(16, 0x02),
  nonce: id(32, 0x03),
  sequence: 0x0102_0304_0506_0708n,
  parent: id(32, 0x04),
};
