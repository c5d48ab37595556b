// SPDX-License-Identifier: Apache-2.0
// How much a job has written to its output files. A job that fills the node's disk harms every other one: beyond the limit
// it is stopped, and its ending names the limit.

import fs from "node:fs";
import type { LaunchPaths } from "../launcher/launcher.ts";
import type { Clock } from "../std/clock.ts";

/** Both streams of one attempt together, on the node's disk. The controller keeps less. */
export const OUTPUT_BYTES_MAX = 1024 * 1024 * 1024;
const LOOK_MS = 1_000;

export type OutputLimit = { readonly paths: LaunchPaths; readonly clock: Clock; readonly bytesMax: number };

/** Resolves with whether the limit was passed; false when the signal came first. */
export async function passesOutputLimit({ paths, clock, bytesMax }: OutputLimit, over: AbortSignal): Promise<boolean> {
  while (!over.aborted) {
    if (sizeOf(paths.stdout) + sizeOf(paths.stderr) > bytesMax) return true;
    await clock.sleep(LOOK_MS, over);
  }
  return false;
}

function sizeOf(file: string): number {
  return fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
