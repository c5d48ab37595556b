// SPDX-License-Identifier: Apache-2.0
// What a controller needs to enrol machines by itself: the fleet's authority and the files that it hands out. Made in bin/.

import type { KeyObject } from "node:crypto";
import type { Architecture } from "../protocol/enrol-schema.ts";

export type Artefact = { readonly file: string; readonly sha256: string };

export type NodeIdentity = { readonly nodeId: string; readonly organisationId: string };

export type Enrolment = {
  /** Of node certificates: PEM, and its SHA-256 in hexadecimal. */
  readonly authority: { readonly pem: string; readonly sha256: string };
  readonly nodeCertificate: (publicKey: KeyObject, who: NodeIdentity) => Promise<string>;
  /**
   * How the server's certificate is told: "fleet" is signed by the authority above and pinned in the command, "system" is one
   * that nodes trust anyway, "none" is plain HTTP.
   */
  readonly trust: "fleet" | "system" | "none";
  /** The server's key as curl's --pinnedpubkey takes it; undefined over plain HTTP. */
  readonly pin: () => string | undefined;
  /** Undefined when this installation has none for that architecture. */
  readonly agent: (arch: Architecture) => Promise<Artefact | undefined>;
  readonly runtime: (arch: Architecture) => Promise<Artefact | undefined>;
  /** The script, rendered with the hashes of all that it fetches. */
  readonly script: () => Promise<string | undefined>;
};
