// SPDX-License-Identifier: Apache-2.0
// The credential that will replace the node's present one: drawn once, kept beside it until the controller has taken its
// hash, then put in its place by one rename. A crash at any moment leaves a file that works.

import fs from "node:fs";
import path from "node:path";
import { codeOf } from "../std/errors.ts";
import { fileFailure } from "../std/files.ts";
import type { Random } from "../std/random.ts";
import { parseCredential } from "./node-key.ts";
import { readPrivateFile, syncDirectory, writePrivateFile } from "./private-file.ts";

function nextFile(directory: string): string {
  return path.join(directory, "credential.next");
}

/** The one that an interrupted replacement drew, else a new one. directory: node/ of the root. */
export function loadOrDrawNext(directory: string, random: Random): string {
  const file = nextFile(directory);
  const known = readPrivateFile(file);
  if (known !== undefined) return parseCredential(known, file);
  const credential = `hfn_${Buffer.from(random.bytes(32)).toString("base64url")}`;
  writePrivateFile(file, `${credential}\n`);
  return credential;
}

/** After the controller has taken the offer: from here on this is the node's credential. */
export function keepNext(directory: string): void {
  try {
    fs.renameSync(nextFile(directory), path.join(directory, "credential"));
    syncDirectory(directory);
  } catch (error) {
    throw codeOf(error) === "ENOENT" ? error : fileFailure(directory, error);
  }
}
