// SPDX-License-Identifier: Apache-2.0
// Waits until a look at a launch finds what it looks for. Rule: a notice of the kernel only makes the look come sooner; the
// look itself decides, and it also comes periodically, because inotify may be out of watches or on a file system without it.

import fs from "node:fs";
import path from "node:path";
import type { Clock } from "../std/clock.ts";
import { codeOf } from "../std/errors.ts";
import { type Identity, isAlive } from "../std/process.ts";
import type { Ending } from "./exit.ts";
import { readExit } from "./launch-files.ts";
import { endRemains } from "./remains.ts";
import type { Trace } from "./survivors.ts";

const POLL_MS = 500;

export type Look<T> = {
  /** A file or directory whose changes call for a look. Not one that a busy job writes to. */
  readonly watched: string;
  readonly periodMs: number;
  readonly look: () => Promise<T | undefined>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

/** What the look found, or undefined when the signal aborted first. */
export async function lookUntil<T>(options: Look<T>): Promise<T | undefined> {
  const { signal, clock } = options;
  let wake = new AbortController();
  const nudge = (): void => wake.abort();
  const stopWatching = watchPath(options.watched, nudge);
  signal.addEventListener("abort", nudge);
  try {
    for (;;) {
      wake = new AbortController();
      const found = await options.look();
      if (found !== undefined || signal.aborted) return found;
      await clock.sleep(options.periodMs, wake.signal);
    }
  } finally {
    signal.removeEventListener("abort", nudge);
    stopWatching();
  }
}

function watchPath(watched: string, nudge: () => void): () => void {
  try {
    const watcher = fs.watch(watched, nudge);
    watcher.on("error", () => watcher.close());
    return () => watcher.close();
  } catch (error) {
    // Not there (renamed already, removed), or no inotify watch left: the period has to do.
    if (["ENOENT", "ENOSPC", "EMFILE", "ENOSYS", "EACCES"].includes(codeOf(error))) return () => {};
    throw error;
  }
}

/** Runs with a signal that aborts after the limit. */
export async function withinLimit<T>(
  clock: Clock,
  limitMs: number,
  run: (limit: AbortController) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const over = new AbortController();
  const timer = clock.sleep(limitMs, over.signal).then(() => limit.abort());
  try {
    return await run(limit);
  } finally {
    over.abort();
    await timer;
  }
}

/**
 * The ending of a launch, ours or adopted; undefined when the signal aborted first. It watches exit.tmp, which the shim holds
 * from before the gate and renames to `exit`: watching the directory would wake us for every line that the job writes.
 * A killed shim takes its job along: what PDEATHSIG missed is ended here, and only then is the launch called lost.
 */
export function waitEnding(
  launch: Trace & { readonly directory: string; readonly identity: Identity },
  clock: Clock,
  signal: AbortSignal,
): Promise<Ending | undefined> {
  const look = async (): Promise<Ending | undefined> => {
    const exit = await readExit(launch.directory);
    if (exit !== undefined || isAlive(launch.identity)) return exit;
    // Gone: it may have written the file between the two looks.
    const last = await readExit(launch.directory);
    if (last !== undefined) return last;
    return (await endRemains(launch, clock, 0)).length === 0 ? { kind: "lost" } : undefined;
  };
  return lookUntil({ watched: path.join(launch.directory, "exit.tmp"), periodMs: POLL_MS, look, clock, signal });
}
