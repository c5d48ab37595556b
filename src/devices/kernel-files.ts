// SPDX-License-Identifier: Apache-2.0
// Reading /sys, /proc and /dev, whose files differ between kernels and drivers: what is not there or not readable is not known.

import fs from "node:fs";
import path from "node:path";

/** Where the kernel's trees are; others than these only in tests on recorded machines. */
export type Roots = {
  readonly sys: string;
  readonly proc: string;
  readonly dev: string;
  readonly etc: string;
};

export const REAL_ROOTS: Roots = { sys: "/sys", proc: "/proc", dev: "/dev", etc: "/etc" };

/** Trimmed, without the NUL that ends a string of the device tree; undefined when empty or unreadable. */
export function readText(...parts: readonly string[]): string | undefined {
  try {
    const text = fs
      .readFileSync(path.join(...parts), "utf8")
      .replaceAll("\0", " ")
      .trim();
    return text === "" ? undefined : text;
  } catch {
    return undefined;
  }
}

/** A whole number above zero; null for anything else. */
export function readBytes(...parts: readonly string[]): number | null {
  const text = readText(...parts);
  return text !== undefined && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null;
}

export function listNames(...parts: readonly string[]): readonly string[] {
  try {
    return fs.readdirSync(path.join(...parts)).sort();
  } catch {
    return [];
  }
}

/** The last part of where a link leads: the driver of a device, the address of a card. */
export function linkName(...parts: readonly string[]): string | undefined {
  try {
    return path.basename(fs.realpathSync(path.join(...parts)));
  } catch {
    return undefined;
  }
}
