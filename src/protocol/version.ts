// SPDX-License-Identifier: Apache-2.0
// Which side of a conversation is older. Asked only when the two do not understand each other: then the older one is told.

/** A node's program says its version with every request. */
export const VERSION_HEADER = "holdfast-version";

/** Below 0: a is older. Undefined when either is no version: MAJOR.MINOR.PATCH, with whatever after a dash left aside. */
export function compareVersions(a: string, b: string): number | undefined {
  const [first, second] = [partsOf(a), partsOf(b)];
  if (first === undefined || second === undefined) return undefined;
  for (const [index, part] of first.entries()) {
    const difference = part - (second[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function partsOf(version: string): readonly number[] | undefined {
  const match = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[-+].*)?$/.exec(version);
  return match === null ? undefined : match.slice(1, 4).map(Number);
}
