// SPDX-License-Identifier: Apache-2.0
// Files that only this account may read: written whole or not at all, mode 0600 from the first byte, flushed before the
// name exists. Rule: a secret that others can read is refused, never used silently.

import fs from "node:fs";
import path from "node:path";
import { codeOf, Failure } from "../std/errors.ts";
import { fileFailure, syncDirectory } from "../std/files.ts";

/** Replaces the file in one step: after a crash it is the old one or the new one. */
export function writePrivateFile(file: string, content: string): void {
  const temporary = `${file}.${process.pid}.new`;
  try {
    fs.rmSync(temporary, { force: true });
    const fd = fs.openSync(temporary, "wx", 0o600);
    try {
      fs.writeFileSync(fd, content);
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
    fs.renameSync(temporary, file);
    syncDirectory(path.dirname(file));
  } catch (error) {
    throw fileFailure(file, error);
  }
}

/** The text of a private file; undefined when there is none. A file that group or others may touch is refused. */
export function readPrivateFile(file: string): string | undefined {
  let fd: number;
  try {
    fd = fs.openSync(file, "r");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw fileFailure(file, error);
  }
  try {
    const mode = fs.fstatSync(fd).mode & 0o777;
    if ((mode & 0o077) !== 0) {
      throw new Failure(
        "secret_exposed",
        `${file} has mode 0${mode.toString(8)}: other accounts can reach this secret; chmod 600 it, and pair again if somebody may have read it`,
      );
    }
    return fs.readFileSync(fd, "utf8");
  } finally {
    fs.closeSync(fd);
  }
}
