// SPDX-License-Identifier: Apache-2.0
// Enrols this machine: a pairing code for a node. Rules: key and credential are on disk before the controller hears of them,
// so that the same command with the same code works again after a crash or a lost answer; and a pairing that fails leaves
// the one before it as it was.

import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { type Client, createClient } from "../client/client.ts";
import { pairMessage } from "../protocol/agent-schema.ts";
import { codeOf, Failure } from "../std/errors.ts";
import { fileFailure, makeDirectory, syncDirectory } from "../std/files.ts";
import type { Random } from "../std/random.ts";
import { type AgentConfig, encodeAgentConfig } from "./agent-config.ts";
import {
  credentialHash,
  loadOrDrawCredential,
  loadOrMakeNodeKey,
  nodeDirectory,
  publicKeyText,
  signText,
} from "./node-key.ts";
import { writePrivateFile } from "./private-file.ts";

export type PairOptions = {
  readonly client: Client;
  /** Never logged, never in argv. */
  readonly code: string;
  readonly root: string;
  readonly random: Random;
  readonly signal?: AbortSignal;
};

export type Paired = AgentConfig & { readonly organisationName: string };

/** agent.json last: where it lies in a staging directory, the pairing has succeeded. */
const FILES = ["node.key", "credential", "authority.pem", "node.crt", "agent.json"] as const;
const STAGING_PREFIX = "pairing-";

/** Throws the controller's Failure (pairing_code_used, node_name_taken, …) or that of the file system. */
export async function pair(options: PairOptions): Promise<Paired> {
  const { client, root, random } = options;
  const code = options.code.trim();
  if (!/^[\x21-\x7e]{1,256}$/.test(code))
    throw new Failure("secret_missing", "the pairing code is empty or damaged: copy it again");
  makeDirectory(nodeDirectory(root), 0o700);
  const staging = path.join(
    nodeDirectory(root),
    `${STAGING_PREFIX}${createHash("sha256").update(code).digest("hex").slice(0, 16)}`,
  );
  makeDirectory(staging, 0o700);
  const key = loadOrMakeNodeKey(staging);
  const publicKey = publicKeyText(key);
  const hash = credentialHash(loadOrDrawCredential(staging, random));
  const reply = await client.call(
    "nodePair",
    {
      pairingCode: code,
      body: { publicKey, credentialHash: hash, signature: signText(key, pairMessage(code, publicKey, hash)) },
    },
    options.signal === undefined ? {} : { signal: options.signal },
  );
  if (reply.certificate !== null) {
    const { certificate, authority } = reply.certificate;
    writePrivateFile(path.join(staging, "authority.pem"), authority);
    writePrivateFile(path.join(staging, "node.crt"), certificate);
  }
  const config = { controllerUrl: client.baseUrl, nodeId: reply.nodeId, name: reply.name };
  writePrivateFile(path.join(staging, "agent.json"), encodeAgentConfig(config));
  finishPairing(root);
  return { ...config, organisationName: reply.organisationName };
}

/** Puts the files of a pairing that succeeded in their places, also after a crash in the middle of that. Idempotent. */
export function finishPairing(root: string): void {
  const directory = nodeDirectory(root);
  try {
    for (const staging of stagings(directory)) {
      if (!fs.existsSync(path.join(staging, "agent.json"))) continue;
      for (const file of FILES) {
        if (fs.existsSync(path.join(staging, file)))
          fs.renameSync(path.join(staging, file), path.join(directory, file));
      }
      syncDirectory(directory);
      // What other codes have staged belongs to no node.
      for (const left of stagings(directory)) fs.rmSync(left, { recursive: true, force: true });
    }
  } catch (error) {
    throw fileFailure(directory, error);
  }
}

function stagings(directory: string): readonly string[] {
  if (!fs.existsSync(directory)) return [];
  return fs
    .readdirSync(directory)
    .filter((name) => name.startsWith(STAGING_PREFIX))
    .map((name) => path.join(directory, name));
}

/** Asked about, it disturbs no session that there is. */
const NO_SESSION = `nses_${"0".repeat(26)}`;

/** Why the controller does not take this credential now; undefined when it does. */
export async function whyRefused(baseUrl: string, credential: string): Promise<unknown> {
  try {
    await createClient({ baseUrl, credential }).call("nodeRenewals", { body: { sessionId: NO_SESSION, leases: [] } });
    return undefined;
  } catch (error) {
    return codeOf(error) === "session_superseded" ? undefined : error;
  }
}
