// SPDX-License-Identifier: Apache-2.0
// What can go wrong with a file of ours, in our words: which place, and which of full, forbidden or unusable it is.

import fs from "node:fs";
import path from "node:path";
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

/** Makes a directory with exactly this mode, its parents included where missing, and checks that it can be written. */
export function makeDirectory(directory: string, mode: number): void {
  try {
    makeMissing(directory, mode);
    if (!fs.statSync(directory).isDirectory()) {
      throw new Failure("root_unusable", `${directory} cannot be used as a directory: it is a file`);
    }
    fs.accessSync(directory, fs.constants.W_OK | fs.constants.X_OK);
  } catch (error) {
    throw fileFailure(directory, error);
  }
}

/** Not mkdir's own recursive way: where a parent refuses children with ENOENT, as /proc does, that one never ends. */
function makeMissing(directory: string, mode: number): void {
  if (fs.existsSync(directory)) return;
  if (directory !== path.dirname(directory)) makeMissing(path.dirname(directory), mode);
  try {
    fs.mkdirSync(directory, { mode });
    // Exactly, whatever the umask is: another account may have to pass through.
    fs.chmodSync(directory, mode);
  } catch (error) {
    // Somebody else was faster; whether it is a directory shows when it is used.
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

/** Writes a directory's entries through to the disk: a rename lasts only after that. */
export function syncDirectory(directory: string): void {
  const fd = fs.openSync(directory, "r");
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

/** For files of /proc and /sys, which come and go: empty when it cannot be read. */
export function readOrEmpty(file: string): string {
  try {
    return fs.readFileSync(file, "latin1");
  } catch {
    return "";
  }
}
