// SPDX-License-Identifier: Apache-2.0
// Sends one output file of an attempt to the controller, in order, in chunks cut between characters, as it grows. Keeps no
// state of its own: after a restart it starts at 0 and the controller's verdict says where to go on.

import fs from "node:fs";
import type { VerdictKind } from "../protocol/agent-schema.ts";
import { LOG_ATTEMPT_BYTES_MAX, LOG_CHUNK_BYTES_MAX } from "../protocol/limits.ts";
import type { Clock } from "../std/clock.ts";

/** Behind the watch on the file, for file systems that tell nothing. */
const LOOK_EVERY_MS = 250;
/** Between two chunks of a slow writer; a fast one fills its chunks and is not held up. */
const PACE_MS = 50;

export type LogPumpOptions = {
  readonly file: string;
  readonly clock: Clock;
  readonly send: (
    offset: number,
    data: Buffer,
  ) => Promise<{ readonly verdict: VerdictKind; readonly expectedOffset?: number }>;
};

/** Runs until the writer has ended and all is sent, or the lease is lost ("lost"), or the signal aborts. */
export async function pumpLog(
  options: LogPumpOptions,
  ended: AbortSignal,
  signal: AbortSignal,
): Promise<"sent" | "lost" | "aborted"> {
  const { file, clock, send } = options;
  let offset = 0;
  while (!signal.aborted) {
    // Looked at before the read: what was written before the end is then seen by it.
    const isLast = ended.aborted;
    const chunk = readChunk(file, offset, isLast);
    if (chunk.length === 0) {
      if (isLast) return "sent";
      await waitForMore(file, clock, AbortSignal.any([ended, signal]));
      continue;
    }
    const { verdict, expectedOffset } = await send(offset, chunk);
    if (verdict !== "done" && verdict !== "already_done" && verdict !== "gap") return "lost";
    offset = expectedOffset ?? offset + chunk.length;
    // One chunk beyond what is kept tells the controller that there was more.
    if (offset > LOG_ATTEMPT_BYTES_MAX) return "sent";
    if (chunk.length < LOG_CHUNK_BYTES_MAX / 2) await clock.sleep(PACE_MS, ended);
  }
  return "aborted";
}

function readChunk(file: string, offset: number, isLast: boolean): Buffer {
  let fd: number;
  try {
    fd = fs.openSync(file, "r");
  } catch {
    // The shim makes it before the command starts; a launch that never started has none.
    return Buffer.alloc(0);
  }
  try {
    const buffer = Buffer.alloc(LOG_CHUNK_BYTES_MAX);
    const length = fs.readSync(fd, buffer, 0, buffer.length, offset);
    return buffer.subarray(0, isLast && length < buffer.length ? length : wholeCharacters(buffer, length));
  } finally {
    fs.closeSync(fd);
  }
}

/** The length without a UTF-8 character that is cut off at the end; all of it when that is no UTF-8 anyway. */
export function wholeCharacters(buffer: Uint8Array, length: number): number {
  for (let back = 1; back <= Math.min(4, length); back++) {
    const byte = buffer[length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const wanted = byte >= 0xf8 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > back ? length - back : length;
  }
  return length;
}

async function waitForMore(file: string, clock: Clock, signal: AbortSignal): Promise<void> {
  const changed = new AbortController();
  let watcher: fs.FSWatcher | undefined;
  try {
    watcher = fs.watch(file, () => changed.abort());
    watcher.on("error", () => {});
  } catch {
    // Not there yet, or no watches left: the look every half second is enough.
  }
  await clock.sleep(LOOK_EVERY_MS, AbortSignal.any([signal, changed.signal]));
  watcher?.close();
}
