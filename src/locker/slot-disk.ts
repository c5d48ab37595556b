// SPDX-License-Identifier: Apache-2.0
// One slot's directory as the locker uses it: the few steps whose order is the write protocol. Two real implementations:
// the file system here, and the simulator's disk, which loses, tears and swaps what was not flushed.

import fs from "node:fs";
import path from "node:path";
import { codeOf, Failure } from "../std/errors.ts";
import { makeDirectory, syncDirectory } from "../std/files.ts";
import { takeLock } from "../std/lock.ts";
import type { Reading } from "./judge.ts";

export interface SlotDisk {
  /** For people: the directory. */
  readonly place: string;
  read(name: string): Promise<Reading>;
  /** Writes and flushes a new file beside the record. */
  writeTemporary(name: string, bytes: Uint8Array): Promise<void>;
  /** Puts the temporary file in the record's place. */
  rename(name: string): Promise<void>;
  /** Flushes the directory: from here on the rename lasts. */
  flushDirectory(): Promise<void>;
  removeTemporary(name: string): Promise<void>;
}

const temporary = (name: string): string => `${name}.new`;

/**
 * Takes the lock of the slot for the life of the process: a second locker, in this process or another, is refused.
 * isNew: its directory may be made. Else one that is not there is a disk that is not mounted: it reads as missing, and every
 * store fails until the end of this life, even if it is mounted meanwhile, because nothing on it was judged.
 */
export function openSlot(directory: string, isNew = true): SlotDisk & Disposable {
  if (isNew) makeLastingDirectory(directory);
  else if (!fs.existsSync(directory)) return absentSlot(directory);
  const lock = takeLock(path.join(directory, "locker.lock"), `pid ${process.pid}`);
  if (lock.kind === "held")
    throw new Failure(
      "root_in_use",
      `the locker slot ${directory} is in use${lock.holder === "" ? "" : ` by ${lock.holder}`}`,
    );
  const at = (name: string): string => path.join(directory, name);
  return {
    place: directory,
    read: (name) => Promise.resolve(readSlotFile(at(name))),
    writeTemporary: async (name, bytes) => {
      const file = await fs.promises.open(at(temporary(name)), "w", 0o600);
      try {
        // writeFile goes on after a short write; write alone may return early.
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
    },
    rename: (name) => fs.promises.rename(at(temporary(name)), at(name)),
    flushDirectory: async () => {
      const handle = await fs.promises.open(directory, "r");
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    },
    removeTemporary: (name) => fs.promises.rm(at(temporary(name)), { force: true }),
    [Symbol.dispose]: () => lock.release(),
  };
}

function absentSlot(directory: string): SlotDisk & Disposable {
  const fail = (): Promise<never> =>
    Promise.reject(Object.assign(new Error(`${directory} was not there at the start`), { code: "ENOENT" }));
  return {
    place: directory,
    read: () => Promise.resolve({ kind: "missing" }),
    writeTemporary: fail,
    rename: fail,
    flushDirectory: fail,
    removeTemporary: () => Promise.resolve(),
    [Symbol.dispose]: () => {},
  };
}

/** With its missing parents, flushed: a slot whose directory is gone after a power cut would pass for a blank disk. */
function makeLastingDirectory(directory: string): void {
  const missing: string[] = [];
  for (let at = directory; !fs.existsSync(at); at = path.dirname(at)) missing.push(at);
  makeDirectory(directory, 0o700);
  for (const made of missing) syncDirectory(path.dirname(made));
}

/** What lies in a slot, without its lock. */
export function readSlotFile(file: string): Reading {
  try {
    return { kind: "bytes", bytes: fs.readFileSync(file) };
  } catch (error) {
    const errno = codeOf(error);
    return errno === "ENOENT" ? { kind: "missing" } : { kind: "unreadable", errno };
  }
}
