// SPDX-License-Identifier: Apache-2.0
// A lock file that the kernel holds for as long as its process lives (flock): a killed holder leaves nothing stale. What is
// written in it only tells people who holds it.

import fs from "node:fs";
import { fileFailure } from "./files.ts";
import { tryLock } from "./linux.ts";

export type Lock =
  | { readonly kind: "taken"; readonly release: () => void }
  /** holder: what its holder wrote; before it did, what the one before wrote, or "". */
  | { readonly kind: "held"; readonly holder: string };

/** Makes the file (0600) where it is missing. Throws the Failure of a place that cannot be used. */
export function takeLock(file: string, note: string): Lock {
  let fd: number;
  try {
    fd = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
  } catch (error) {
    throw fileFailure(file, error);
  }
  if (!tryLock(fd)) {
    const holder = fs.readFileSync(file, "utf8").trim();
    fs.closeSync(fd);
    return { kind: "held", holder };
  }
  // In this order the file of a lock that is taken again and again is never empty.
  fs.ftruncateSync(fd, fs.writeSync(fd, `${note}\n`, 0));
  return { kind: "taken", release: () => fs.closeSync(fd) };
}

/** What the holder of the lock wrote; undefined when nobody holds it. */
export function lockHolder(file: string): string | undefined {
  if (!fs.existsSync(file)) return undefined;
  const fd = fs.openSync(file, "r+");
  try {
    return tryLock(fd) ? undefined : fs.readFileSync(file, "utf8").trim();
  } finally {
    fs.closeSync(fd);
  }
}
