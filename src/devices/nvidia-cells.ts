// SPDX-License-Identifier: Apache-2.0
// What the cells and elements of nvidia-smi mean. Rule: "[N/A]", "[Not Supported]", "[Insufficient Permissions]" and whatever
// else is no number is unknown.

import { freeBytes } from "./device.ts";

/** Cells are in MiB, with the unit in XML and without it in CSV. */
export function mebibytes(cell: string | undefined): number | null {
  const number = /^(\d{1,12})(?: MiB)?$/.exec(cell?.trim() ?? "")?.[1];
  return number === undefined ? null : Number(number) * 2 ** 20;
}

/** What is free as it is told; else what is not used. Part of a card is reserved, so the two differ. */
export function freeOf(total: number | null, free: number | null, used: number | null): number | null {
  if (total !== null && free !== null) return free <= total ? free : null;
  return freeBytes(total, used);
}

/** nvidia-smi writes an 8-digit domain, the kernel a 4-digit one. */
export function shortAddress(address: string): string {
  return address.toLowerCase().replace(/^0{4}(?=[0-9a-f]{4}:)/, "");
}
