// SPDX-License-Identifier: Apache-2.0
// The credential that will replace the node's present one: drawn once, kept beside it until the controller has taken its
// hash, then put in its place by one rename. A crash at any moment leaves a file that works.

import fs from "node:fs";
import path from "node:path";
import { codeOf } from "../std/errors.ts";
import { fileFailure, syncDirectory } from "../std/files.ts";
import type { Random } from "../std/random.ts";
import { loadOrDrawCredential } from "./node-key.ts";

const NEXT = "credential.next";

/** The one that an interrupted replacement drew, else a new one. directory: node/ of the root. */
export function loadOrDrawNext(directory: string, random: Random): string {
  return loadOrDrawCredential(directory, random, NEXT);
}

/** After the controller has taken the offer: from here on this is the node's credential. */
export function keepNext(directory: string): void {
  try {
    fs.renameSync(path.join(directory, NEXT), path.join(directory, "credential"));
    syncDirectory(directory);
  } catch (error) {
    throw codeOf(error) === "ENOENT" ? error : fileFailure(directory, error);
  }
}
