// SPDX-License-Identifier: Apache-2.0
// The locker of this node: one slot a disk. Which slots there are is kept in the root, because a node that forgot one of two
// would take half of what it knows for all of it.

import { createHash, createPublicKey, type KeyObject } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { nodeDirectory } from "../enrol/node-key.ts";
import { writePrivateFile } from "../enrol/private-file.ts";
import { Locker, openSlot } from "../locker/locker.ts";
import { codeOf, Failure } from "../std/errors.ts";
import { fileFailure } from "../std/files.ts";
import { systemRandom } from "../std/random.ts";

const SLOTS_MAX = 8;

/** Takes the lock of every slot until the stack is disposed. */
export function openLocker(
  root: string,
  given: readonly string[] | undefined,
  key: KeyObject,
  stack: { use<Value extends Disposable>(value: Value): Value },
): Locker {
  const settled = settleSlots(root, given);
  const slots = settled.map(({ directory, isNew }) => stack.use(openSlot(directory, isNew)));
  return new Locker({ slots, fingerprint: fingerprintOf(key), random: systemRandom });
}

/** SHA-256 of the public key in DER. */
export function fingerprintOf(key: KeyObject): Uint8Array {
  return createHash("sha256")
    .update(createPublicKey(key).export({ format: "der", type: "spki" }))
    .digest();
}

const listFile = (root: string): string => path.join(nodeDirectory(root), "locker-slots");

/** As they were settled; node/locker in the root before that. */
export function knownSlots(root: string): readonly string[] {
  try {
    const lines = fs.readFileSync(listFile(root), "utf8").split("\n");
    return lines.filter((line) => line !== "");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [path.join(nodeDirectory(root), "locker")];
    throw fileFailure(listFile(root), error);
  }
}

/** isNew: its directory may be made. That of a slot that was used before is on a disk that is not mounted, if it is not there. */
type SettledSlot = { readonly directory: string; readonly isNew: boolean };

/** Slots may be added; one that is left out would be forgotten, and is refused. */
function settleSlots(root: string, given: readonly string[] | undefined): readonly SettledSlot[] {
  const known = knownSlots(root);
  const isListed = fs.existsSync(listFile(root));
  if (given === undefined) return known.map((directory) => ({ directory, isNew: !isListed }));
  const wrong = given.find((directory) => !path.isAbsolute(directory) || directory.includes("\n"));
  if (wrong !== undefined) throw new Failure("usage", `--locker-slot takes an absolute directory, not ${wrong}`);
  const wanted = [...new Set(given.map((directory) => path.normalize(directory)))];
  if (wanted.length > SLOTS_MAX) throw new Failure("usage", `a locker has at most ${SLOTS_MAX} slots`);
  const isUsed = isListed || fs.existsSync(path.join(known[0] ?? "", "boundary"));
  const lost = isUsed ? known.filter((directory) => !wanted.includes(directory)) : [];
  if (lost.length > 0)
    throw new Failure(
      "config_invalid",
      `the locker of this node also has the slot ${lost.join(" and ")}: name every slot, or move its files to the new place first`,
    );
  writePrivateFile(listFile(root), `${wanted.join("\n")}\n`);
  return wanted.map((directory) => ({ directory, isNew: !isListed || !known.includes(directory) }));
}
