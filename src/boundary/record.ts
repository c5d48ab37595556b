// SPDX-License-Identifier: Apache-2.0
// What a node remembers of what it started: the boundary's record and its format. Every list is bounded; what fits all of
// these and not its envelope is refused as full before it is written. tests/golden pins the bytes.

import { bytes, codecOf, count, list, nullable, oneOf, struct, text, u64, type ValueOf } from "../records/shape.ts";
import { recordChain } from "../records/version-chain.ts";
import { RECORD_BYTES_MAX } from "../locker/envelope.ts";
import { emptyBurned, BURNED_BYTES } from "./burned.ts";

export const SESSIONS_MAX = 64;
export const ENTRIES_MAX = 256;
export const ATTEMPTS_MAX = 1024;
/** Of one session: positions that were decided here and may come again. */
export const HANDLED_MAX = 512;
/** Session starts that none of the others dominates. */
export const EXECUTED_MAX = 64;

const identity = struct({
  bootId: text(36),
  pid: count(),
  startTicks: u64,
  /** Empty where the kernel gives none. */
  pidfdInode: text(20),
});
export type StoredIdentity = ValueOf<typeof identity>;

/** released: its gate was opened or is about to be. */
const stage = oneOf(["released", "ended"]);

const attempt = struct({
  jobId: text(64),
  epoch: u64,
  launchId: text(200),
  identity: nullable(identity),
  stage,
  /** How it ended, as the agent tells it; empty before. */
  outcome: text(64),
});
export type AttemptEntry = ValueOf<typeof attempt>;

const entry = struct({
  job: bytes(32),
  launchId: text(200),
  identity: nullable(identity),
  stage,
  outcome: text(64),
});
export type SessionEntry = ValueOf<typeof entry>;

const session = struct({
  network: bytes(16),
  session: bytes(32),
  /** Hash of the message that started the session: what the ordering port compares. */
  start: bytes(32),
  /** The job at the head of the chain; null before the first. */
  head: nullable(bytes(32)),
  /** The job id that may come next. */
  successor: bytes(32),
  handled: list(bytes(32), HANDLED_MAX),
  entries: list(entry, ENTRIES_MAX),
});
export type SessionRecord = ValueOf<typeof session>;

const record = struct({
  /** The gossip network that versions belong to. */
  network: nullable(bytes(16)),
  burned: bytes(BURNED_BYTES),
  executed: list(bytes(32), EXECUTED_MAX),
  sessions: list(session, SESSIONS_MAX),
  attempts: list(attempt, ATTEMPTS_MAX),
});
export type BoundaryRecord = ValueOf<typeof record>;

export const boundaryFormat = recordChain(1, codecOf(record, RECORD_BYTES_MAX));

export const emptyRecord: BoundaryRecord = {
  network: null,
  burned: emptyBurned,
  executed: [],
  sessions: [],
  attempts: [],
};

export type IdentityLike = {
  readonly bootId: string;
  readonly pid: number;
  readonly startTicks: string;
  readonly pidfdInode?: string;
};

/** The way back. */
export function identityOfStored({ bootId, pid, startTicks, pidfdInode }: StoredIdentity): IdentityLike {
  return { bootId, pid, startTicks: String(startTicks), ...(pidfdInode === "" ? {} : { pidfdInode }) };
}

export function storedIdentity(given: IdentityLike): StoredIdentity {
  const { bootId, pid, startTicks, pidfdInode = "" } = given;
  return { bootId, pid, startTicks: BigInt(startTicks), pidfdInode };
}
