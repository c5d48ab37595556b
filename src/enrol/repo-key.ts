// SPDX-License-Identifier: Apache-2.0
// The deploy key of this node, made on it by ssh-keygen, and the host key of the server, trusted by its fingerprint. Rules: the
// private half never leaves its file (0600) and is in no argv; a key belongs to one repository; a host is never trusted unseen.

import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { Failure } from "../std/errors.ts";
import { syncDirectory } from "../std/files.ts";
import { readPrivateFile, writePrivateFile } from "./private-file.ts";
import type { RepoAccess } from "./repo-access.ts";
import { type ChildOptions, lastWords, runChild } from "./repo-child.ts";

/** One line of OpenSSH's form: the key that is there, or a new one. comment: for people who look at the server's list. */
export async function publicRepoKey(comment: string, options: ChildOptions): Promise<string> {
  const { key } = options.place;
  // A file that others can read is refused, and so never used.
  if (readPrivateFile(key) === undefined) await makeKey(comment, options);
  const ran = await runChild(["ssh-keygen", "-y", "-P", "", "-f", key], options);
  const line = ran.stdout.toString("utf8").trim();
  if (ran.code === 0 && /^ssh-ed25519 \S+/.test(line)) return withComment(line, comment);
  const what = "is not a private key that ssh can use: restore it, or make another one with --replace";
  throw new Failure("config_invalid", `${key} ${what} (${lastWords(ran.stderr)})`);
}

function withComment(line: string, comment: string): string {
  const [type, key] = line.split(" ");
  return `${type} ${key} ${comment}`;
}

/** Beside its place first: a key that is cut off never has the name. */
async function makeKey(comment: string, options: ChildOptions): Promise<void> {
  const { directory, key } = options.place;
  const beside = fs.mkdtempSync(path.join(directory, "new-"));
  try {
    const made = path.join(beside, "key");
    // The empty passphrase is no secret: the key is used without a person.
    const argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", made];
    const ran = await runChild(argv, options);
    if (ran.code !== 0) throw new Failure("system_call_failed", `ssh-keygen made no key: ${lastWords(ran.stderr)}`);
    writePrivateFile(key, fs.readFileSync(made, "utf8"));
  } finally {
    fs.rmSync(beside, { recursive: true, force: true });
  }
}

/** The next one is a new one. isSameHost: its host key stays trusted. */
export function forgetRepoKey({ place }: ChildOptions, isSameHost: boolean): void {
  for (const file of [place.key, place.pulled, ...(isSameHost ? [] : [place.knownHosts])])
    fs.rmSync(file, { force: true });
  syncDirectory(place.directory);
}

export type HostKey = {
  /** A line of known_hosts. */
  readonly line: string;
  readonly type: string;
  /** As OpenSSH prints it: SHA256:… */
  readonly fingerprint: string;
};

/** "SHA256:" and 43 characters of base64, of the key's bytes. */
export function fingerprintOf(base64: string): string {
  const hash = createHash("sha256").update(Buffer.from(base64, "base64")).digest("base64");
  return `SHA256:${hash.replace(/=+$/, "")}`;
}

/** What the server shows at this moment; nobody vouches for it. Throws repo_unreachable. */
export async function shownHostKeys({ host, port }: RepoAccess, options: ChildOptions): Promise<readonly HostKey[]> {
  const ran = await runChild(["ssh-keyscan", "-T", "10", "-p", String(port), host], options);
  const keys = ran.stdout
    .toString("utf8")
    .split("\n")
    .flatMap((line): readonly HostKey[] => {
      const [, type, base64] = /^[^#\s]\S* (\S+) ([A-Za-z0-9+/=]+)$/.exec(line) ?? [];
      return type === undefined || base64 === undefined ? [] : [{ line, type, fingerprint: fingerprintOf(base64) }];
    });
  if (keys.length > 0) return keys;
  throw new Failure("repo_unreachable", `${host}:${port} shows no host key: ${lastWords(ran.stderr)}`);
}

/** Throws repo_host_unknown with what it shows instead. */
export async function trustHost(access: RepoAccess, fingerprint: string, options: ChildOptions): Promise<void> {
  const shown = await shownHostKeys(access, options);
  const found = shown.find((key) => key.fingerprint === fingerprint);
  if (found !== undefined) return writePrivateFile(options.place.knownHosts, `${found.line}\n`);
  const others = shown.map((key) => `${key.fingerprint} (${key.type})`).join(", ");
  throw new Failure(
    "repo_host_unknown",
    `${access.host}:${access.port} shows no host key ${fingerprint}; it shows ${others}: nothing was trusted`,
  );
}
