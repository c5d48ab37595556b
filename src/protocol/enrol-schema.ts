// SPDX-License-Identifier: Apache-2.0
// What crosses HTTP while a machine is enrolled: the code and the command that people get, and the phases that the bootstrap
// script reports, so that "the controller has seen nothing" cannot happen.

import Type, { type Static } from "typebox";
import { exact, id, name, nullable, time } from "./common-schema.ts";

/** In this order; prove means that the controller itself saw the node online. */
export const enrolPhases = ["look", "plan", "fetch", "install", "pair", "start", "prove", "uninstall"] as const;
export type EnrolPhase = (typeof enrolPhases)[number];

/** How many reports are kept of one pairing; later ones replace the last. */
export const PHASES_MAX = 32;
export const PHASE_DETAIL_MAX = 512;

export const architectures = ["x64", "arm64"] as const;
export type Architecture = (typeof architectures)[number];

export const phaseReport = exact({
  phase: Type.Enum([...enrolPhases]),
  outcome: Type.Enum(["begun", "done", "failed"]),
  /** In words; of a failure, what to do. */
  detail: Type.String({ maxLength: PHASE_DETAIL_MAX }),
});
export type PhaseReport = Static<typeof phaseReport>;

const phaseSeen = exact({
  phase: Type.Enum([...enrolPhases]),
  outcome: Type.Enum(["begun", "done", "failed"]),
  detail: Type.String(),
  at: time,
});

/** Told to whoever holds the code. */
export const pairingProgress = exact({
  state: Type.Enum(["waiting", "paired", "expired"]),
  name,
  node: nullable(exact({ id: id("node"), online: Type.Boolean(), version: nullable(Type.String()) })),
});
export type PairingProgress = Static<typeof pairingProgress>;

/** Told to the node itself. */
export const nodeSelf = exact({
  id: id("node"),
  name,
  online: Type.Boolean(),
  version: nullable(Type.String()),
  /** When the agent that speaks for it said hello. */
  sessionAt: nullable(time),
});

/** Told to people: everything but the code, which is shown once. */
export const pairing = exact({
  id: id("pair"),
  name,
  state: Type.Enum(["waiting", "paired", "expired"]),
  createdAt: time,
  expiresAt: time,
  /** When and from where it was first used, and the SHA-256 of the key that used it, hexadecimal. */
  usedAt: nullable(time),
  usedFrom: nullable(Type.String()),
  keyFingerprint: nullable(Type.String()),
  nodeId: nullable(id("node")),
  /** The node whose machine it replaces. */
  takesOver: nullable(id("node")),
  phases: Type.Array(phaseSeen),
});
export type Pairing = Static<typeof pairing>;

/** What a person runs on the machine. None of it holds the code, which goes into the environment first. */
export const enrolCommands = exact({
  /** One line; the script comes from the controller and is told by its key. */
  run: Type.String(),
  /** The same in steps: fetch, read, run. */
  read: Type.Array(Type.String()),
  /** SHA-256 of the script, hexadecimal. */
  scriptSha256: Type.String(),
});
export type EnrolCommands = Static<typeof enrolCommands>;

export const pairingCode = exact({
  id: id("pair"),
  name,
  code: Type.String({ description: "shown once" }),
  expiresAt: time,
  /** Null where this controller has no bundle of the agent to hand out. */
  commands: nullable(enrolCommands),
});
export type PairingCode = Static<typeof pairingCode>;

/** Of the agent for one architecture; SHA-256 in hexadecimal. */
export const release = exact({ version: Type.String(), sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }) });

export const architectureQuery = exact({ arch: Type.Enum([...architectures]) });

/** Both in PEM. Null: this controller has no authority of its own. */
export const nodeCertificate = exact({ certificate: Type.String(), authority: Type.String() });
