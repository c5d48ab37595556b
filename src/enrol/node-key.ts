// SPDX-License-Identifier: Apache-2.0
// The node's own secrets: an Ed25519 key pair and the credential that it draws for itself. Rule: neither ever leaves the
// machine; the controller learns the public key and a hash, and possession is proved by a signature.

import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import path from "node:path";
import { Failure } from "../std/errors.ts";
import type { Random } from "../std/random.ts";
import { readPrivateFile, writePrivateFile } from "./private-file.ts";

const CREDENTIAL_PATTERN = /^hfn_[A-Za-z0-9_-]{43}$/;

export function nodeDirectory(root: string): string {
  return path.join(root, "node");
}

/** Held by the agent that runs on this root. */
export function agentLockFile(root: string): string {
  return path.join(nodeDirectory(root), "agent.lock");
}

export function credentialFile(root: string): string {
  return path.join(nodeDirectory(root), "credential");
}

/** The private key in this directory, drawn at the first call and the same ever after. */
export function loadOrMakeNodeKey(directory: string): KeyObject {
  const file = path.join(directory, "node.key");
  const text = readPrivateFile(file);
  if (text === undefined) {
    const { privateKey } = generateKeyPairSync("ed25519");
    writePrivateFile(file, privateKey.export({ type: "pkcs8", format: "pem" }).toString());
    return privateKey;
  }
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch (error) {
    throw new Failure("config_invalid", `${file} is not a private key in PEM: restore it, or delete it and pair anew`, {
      cause: error,
    });
  }
  throw new Failure("config_invalid", `${file} is not an Ed25519 key: restore it, or delete it and pair anew`);
}

/** Raw 32 bytes, base64url. */
export function publicKeyText(privateKey: KeyObject): string {
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  if (x === undefined) throw new Failure("config_invalid", "the node's key has no public half");
  return x;
}

export function signText(privateKey: KeyObject, text: string): string {
  return sign(null, Buffer.from(text, "utf8"), privateKey).toString("base64url");
}

/** The credential in <root>/node/credential; undefined when there is none. */
export function loadCredential(root: string): string | undefined {
  const text = readPrivateFile(credentialFile(root));
  return text === undefined ? undefined : parseCredential(text, credentialFile(root));
}

/** name: of the file; another one for a credential that is not the node's present one yet. */
export function loadOrDrawCredential(directory: string, random: Random, name = "credential"): string {
  const file = path.join(directory, name);
  const text = readPrivateFile(file);
  if (text !== undefined) return parseCredential(text, file);
  const credential = `hfn_${Buffer.from(random.bytes(32)).toString("base64url")}`;
  writePrivateFile(file, `${credential}\n`);
  return credential;
}

/** Checks the form; place says where the text came from, and the text itself is never repeated. */
export function parseCredential(text: string, place: string): string {
  const credential = text.trim();
  if (credential === "")
    throw new Failure("secret_missing", `${place} is empty: it should hold the node's credential (hfn_…)`);
  if (!CREDENTIAL_PATTERN.test(credential)) {
    throw new Failure(
      "config_invalid",
      `${place} does not hold a node's credential: one begins with hfn_ and has 47 characters`,
    );
  }
  return credential;
}

/** SHA-256, base64url: all that the controller ever learns. */
export function credentialHash(credential: string): string {
  return createHash("sha256").update(credential, "utf8").digest("base64url");
}
