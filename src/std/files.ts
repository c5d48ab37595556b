// SPDX-License-Identifier: Apache-2.0
// What can go wrong with a file of ours, in our words: which place, and which of full, forbidden or unusable it is.

import fs from "node:fs";
import { codeOf, Failure, messageOf } from "./errors.ts";

/** A file system error in our words; anything else as it is. */
export function fileFailure(place: string, error: unknown): unknown {
  const code = codeOf(error);
  if (code === "ENOSPC" || code === "EDQUOT")
    return new Failure("disk_full", `no space is left to write ${place}`, { cause: error });
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
    return new Failure("directory_unwritable", `this account may not write ${place}`, { cause: error });
  }
  if (["ENOTDIR", "EEXIST", "ELOOP", "ENAMETOOLONG", "ENOENT"].includes(code)) {
    return new Failure("root_unusable", `${place} cannot be used as a directory: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return error;
}

/** Makes a directory with exactly this mode, its parents included where missing. */
export function makeDirectory(directory: string, mode: number): void {
  try {
    fs.mkdirSync(directory, { recursive: true, mode });
    fs.accessSync(directory, fs.constants.W_OK | fs.constants.X_OK);
  } catch (error) {
    throw fileFailure(directory, error);
  }
}
