// SPDX-License-Identifier: Apache-2.0
// What crosses HTTP between an agent and the controller. Every write about a lease names job and epoch and is answered
// with a verdict of its own: a batch never fails because of one entry, and a stale write changes nothing.

import Type, { type Static } from "typebox";
import { counter, exact, id, name, nullable, time } from "./common-schema.ts";
import { BATCH_MAX, CLAIM_MAX, CLAIM_WAIT_MS_MAX, HOLDS_MAX, LOG_CHUNK_BYTES_MAX } from "./limits.ts";
import { nodeCertificate, release } from "./enrol-schema.ts";
import { logStream } from "./job-schema.ts";
import { boundaryStates } from "./node.ts";
import { nodeFacts } from "./node-schema.ts";
import { paths } from "./placement.ts";
import { sceneReport, sceneWish } from "./scene-schema.ts";

const sessionId = id("nses");

/** done: written. already_done: this very write was written before (a repeat). The others changed nothing. */
export const verdictKinds = [
  "done",
  "already_done",
  "stale_epoch",
  "not_yours",
  "already_ended",
  "unknown",
  "gap",
] as const;
export type VerdictKind = (typeof verdictKinds)[number];

export const verdict = exact({
  jobId: id("job"),
  epoch: counter,
  verdict: Type.Enum([...verdictKinds]),
  /** With gap: the offset that the controller expects next. */
  expectedOffset: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type Verdict = Static<typeof verdict>;
export const verdicts = exact({ verdicts: Type.Array(verdict) });

const leaseRef = { jobId: id("job"), epoch: counter };
export const lease = exact(leaseRef);
export type LeaseRef = Static<typeof lease>;

export const pairRequest = exact({
  /** The node's own Ed25519 key, raw 32 bytes, base64url. */
  publicKey: Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" }),
  /** SHA-256 of the credential that the node drew for itself, base64url: the controller never learns more. */
  credentialHash: Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" }),
  /** Ed25519 over pairMessage(…): proves that the node holds the key. base64url. */
  signature: Type.String({ pattern: "^[A-Za-z0-9_-]{86}$" }),
});
export const pairReply = exact({
  nodeId: id("node"),
  name,
  organisationName: Type.String(),
  /** For this key under the fleet's authority; null where the controller has none. */
  certificate: nullable(nodeCertificate),
});

/** The bytes that a pairing signs. */
export function pairMessage(code: string, publicKey: string, credentialHash: string): string {
  return `holdfast-pair-v1\n${code}\n${publicKey}\n${credentialHash}\n`;
}

/** Lineages before the present one that are remembered for a node. */
export const SUPERSEDED_MAX = 16;

/** What a node last acknowledged in its locker, signed by itself: it is told again at its next hello, as a guard against a rollback. */
export const boundaryEvidence = exact({
  lineage: Type.String({ pattern: "^[0-9a-f]{32}$" }),
  sequence: counter,
  /** Of the envelope: the same sequence with another one was written after disks went back in time. */
  digest: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  /** Ed25519 over evidenceMessage(…), base64url. */
  signature: Type.String({ pattern: "^[A-Za-z0-9_-]{86}$" }),
});
export type BoundaryEvidence = Static<typeof boundaryEvidence>;

/** The bytes that an evidence signs. */
export function evidenceMessage(nodeId: string, evidence: Omit<BoundaryEvidence, "signature">): string {
  const { lineage, sequence, digest } = evidence;
  return `holdfast-boundary-evidence-v2\n${nodeId}\n${lineage}\n${sequence}\n${digest}\n`;
}

/** Whether a node can promise that it starts nothing twice. One that cannot refuses every job. */
export const boundaryReport = exact({
  state: Type.Enum([...boundaryStates]),
  /** In words, what is wrong; null when trusted. */
  why: nullable(Type.String({ maxLength: 1024 })),
  evidence: nullable(boundaryEvidence),
});
export type BoundaryReport = Static<typeof boundaryReport>;

export const helloRequest = exact({
  facts: nodeFacts,
  boundary: Type.Optional(boundaryReport),
  /** The node's wall clock. */
  now: time,
  /** Leases of an earlier session whose processes or endings it still has. */
  holds: Type.Array(lease, { maxItems: HOLDS_MAX }),
});
export const helloReply = exact({
  sessionId,
  nodeId: id("node"),
  name,
  heartbeatMs: Type.Integer({ minimum: 1 }),
  leaseMs: Type.Integer({ minimum: 1 }),
  renewMs: Type.Integer({ minimum: 1 }),
  /** The newest that this node sent, of whatever life. */
  evidence: nullable(boundaryEvidence),
  /** The last of each lineage that a later one took the place of. */
  superseded: Type.Array(boundaryEvidence, { maxItems: SUPERSEDED_MAX }),
  /** For each hold: done = kept under this session; anything else = stop it and drop its result. */
  verdicts: Type.Array(verdict),
});
export type HelloReply = Static<typeof helloReply>;

export const heartbeatRequest = exact({
  sessionId,
  facts: nodeFacts,
  boundary: Type.Optional(boundaryReport),
  /** Absent: the agent keeps no scenes. */
  scenes: Type.Optional(sceneReport),
  now: time,
});
export const heartbeatReply = exact({
  /** What a person asked for last; the node acts on each number once. */
  wish: nullable(sceneWish),
  drain: Type.Boolean(),
  /** The agent is asked to draw a new credential and to offer it. */
  rotate: Type.Boolean(),
  /** What this controller hands out for the node's architecture; null where it has none. */
  release: nullable(release),
});
export type HeartbeatReply = Static<typeof heartbeatReply>;

/** A new credential for the node, drawn by the node: the old one works until the new one is used for the first time. */
export const credentialOffer = exact({
  /** SHA-256 of it, base64url. */
  credentialHash: Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" }),
});
export const credentialOffered = exact({ credentialId: id("cred") });

export const claimRequest = exact({
  sessionId,
  /** Rises with each new claim of the session; the same number again re-delivers an answer that was lost. */
  number: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  max: Type.Integer({ minimum: 1, maximum: CLAIM_MAX }),
  waitMs: Type.Integer({ minimum: 0, maximum: CLAIM_WAIT_MS_MAX }),
});
export const claimedJob = exact({
  ...leaseRef,
  attempt: Type.Integer({ minimum: 1 }),
  command: Type.Array(Type.String()),
  environment: Type.Record(Type.String(), Type.String()),
  workingDirectory: nullable(Type.String()),
  input: Type.Unknown(),
  timeLimitMs: nullable(Type.Integer()),
  /** Where it was given room; absent: it asked for none. */
  placement: Type.Optional(exact({ path: Type.Enum([...paths]), gpus: Type.Array(Type.String({ maxLength: 256 })) })),
  /** Report "started" within this time, counted from when the claim was sent, or the lease is gone. */
  startWithinMs: Type.Integer({ minimum: 1 }),
});
export type ClaimedJob = Static<typeof claimedJob>;
export const claimReply = exact({ jobs: Type.Array(claimedJob), drain: Type.Boolean() });

export const startsRequest = exact({ sessionId, starts: Type.Array(lease, { minItems: 1, maxItems: BATCH_MAX }) });

export const renewalsRequest = exact({ sessionId, leases: Type.Array(lease, { maxItems: BATCH_MAX }) });
export const renewalsReply = exact({
  verdicts: Type.Array(verdict),
  /** Leases whose jobs a person cancelled: stop them. */
  cancel: Type.Array(lease),
  drain: Type.Boolean(),
});

const outcome = Type.Union([
  exact({ kind: Type.Literal("exited"), exitCode: Type.Integer({ minimum: 0, maximum: 255 }) }),
  exact({ kind: Type.Literal("signalled"), signal: Type.String({ maxLength: 16 }) }),
  exact({ kind: Type.Literal("exec-failed"), message: Type.String({ maxLength: 1024 }) }),
  exact({ kind: Type.Literal("interrupted"), message: Type.String({ maxLength: 1024 }) }),
  exact({ kind: Type.Literal("not-started"), message: Type.String({ maxLength: 1024 }) }),
]);

export const ending = exact({
  ...leaseRef,
  outcome,
  stopped: nullable(Type.Enum(["cancel", "time-limit", "output-limit", "release"])),
  startedAt: nullable(time),
  endedAt: nullable(time),
  result: Type.Optional(Type.Unknown()),
  /** What a person should know beside the outcome, storable text. */
  message: nullable(Type.String({ maxLength: 2048 })),
});
export type EndingReport = Static<typeof ending>;
/** One ending a request: a result may be as large as a quarter of a body. */
export const endingRequest = exact({ sessionId, ending });
export const endingReply = verdict;

export const logRequest = exact({
  sessionId,
  ...leaseRef,
  stream: logStream,
  offset: Type.Integer({ minimum: 0 }),
  /** base64 of at most LOG_CHUNK_BYTES_MAX bytes. */
  data: Type.String({ pattern: "^[A-Za-z0-9+/]+={0,2}$", maxLength: Math.ceil(LOG_CHUNK_BYTES_MAX / 3) * 4 }),
});
export const logReply = verdict;
