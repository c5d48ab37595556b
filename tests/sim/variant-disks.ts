// SPDX-License-Identifier: Apache-2.0
// Broken lockers, made by what lies between the real one and its disks: each breaks one rule of the write or load protocol.

import { openEnvelope, sealEnvelope } from "../../src/locker/envelope.ts";
import type { SlotDisk } from "../../src/locker/locker.ts";
import type { Chance } from "./chance.ts";
import type { Variant } from "./run.ts";

export function breakDisks(
  slots: readonly SlotDisk[],
  variant: Variant | undefined,
  chance: Chance,
): readonly SlotDisk[] {
  switch (variant) {
    case "ack-after-one-slot":
      return slots.map((slot, index) => (index === 0 ? slot : lagging(slot)));
    case "sequence-across-lives":
      return slots.map((slot) => ({ ...slot, read: (name) => newestOf(slots, name) }));
    case "repair-restamps":
      return slots.map((slot) => restamping(slot, chance));
    default:
      return slots;
  }
}

/** Says that it has written before it has. */
function lagging(slot: SlotDisk): SlotDisk {
  let behind: Promise<void> = Promise.resolve();
  const later = (act: () => Promise<void>): Promise<void> => {
    behind = behind.then(act).catch(() => {});
    return Promise.resolve();
  };
  return {
    ...slot,
    writeTemporary: (name, bytes) => later(() => slot.writeTemporary(name, bytes)),
    rename: (name) => later(() => slot.rename(name)),
    flushDirectory: () => later(() => slot.flushDirectory()),
  };
}

/** Whoever has the highest sequence wins, whatever life it is of. */
async function newestOf(slots: readonly SlotDisk[], name: string): ReturnType<SlotDisk["read"]> {
  let newest: { readonly sequence: bigint; readonly bytes: Uint8Array } | undefined;
  for (const slot of slots) {
    const reading = await slot.read(name);
    if (reading.kind !== "bytes") continue;
    const opened = openEnvelope(reading.bytes);
    if (opened.kind !== "envelope") continue;
    if (newest === undefined || opened.envelope.sequence > newest.sequence) newest = opened.envelope;
  }
  return newest === undefined ? { kind: "missing" } : { kind: "bytes", bytes: newest.bytes };
}

/** Repairs with an envelope of its own instead of the very bytes of the winner. */
function restamping(slot: SlotDisk, chance: Chance): SlotDisk {
  let isFirst = true;
  return {
    ...slot,
    writeTemporary: (name, bytes) => {
      const opened = openEnvelope(bytes);
      const isRepair = isFirst && opened.kind === "envelope";
      isFirst = false;
      if (!isRepair) return slot.writeTemporary(name, bytes);
      const { envelope } = opened;
      const stamped = {
        ...envelope,
        nonce: chance.bytes(32),
        sequence: envelope.sequence + 1n,
        parent: envelope.digest,
      };
      return slot.writeTemporary(name, sealEnvelope(stamped).bytes);
    },
  };
}
