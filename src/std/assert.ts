// SPDX-License-Identifier: Apache-2.0
// An assertion states what must be true of our own code. It throws a plain Error: a failed one is a bug, never an input fault.

export function assert(condition: unknown, why: string): asserts condition {
  if (!condition) throw new Error(`bug: ${why}`);
}
