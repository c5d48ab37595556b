// SPDX-License-Identifier: Apache-2.0
// The lines of a job's output, put together from chunks in the order they arrived. A line that another stream interrupts is
// gone on with where it began. Rule: the newest LINES_MAX lines are kept; what is dropped is counted, and said.

import type { LogChunk } from "../../../src/protocol/job-schema.ts";

/** Beyond this a browser's scroll area would end: 17.9 million pixels. */
export const LINES_MAX = 500_000;
/** Dropped in one go, so that it is rare. */
const DROP = 50_000;

export type LogLine = {
  readonly stream: LogChunk["stream"];
  readonly epoch: string;
  readonly at: string;
  readonly text: string;
};

export type LogStore = {
  readonly lines: () => readonly LogLine[];
  readonly dropped: () => number;
  /** Rises with each change. */
  readonly version: () => number;
  readonly add: (chunks: readonly LogChunk[]) => void;
  readonly subscribe: (listener: () => void) => () => void;
};

export function createLogStore(): LogStore {
  let lines: LogLine[] = [];
  let dropped = 0;
  let version = 0;
  /** Where the unfinished line of each stream is, counted from the very first line. */
  const open = new Map<string, number>();
  const listeners = new Set<() => void>();

  const addChunk = (chunk: LogChunk): void => {
    const key = `${chunk.epoch} ${chunk.stream}`;
    const parts = chunk.text.split("\n");
    for (const [index, text] of parts.entries()) {
      const isLast = index === parts.length - 1;
      const at = open.get(key);
      const before = at === undefined ? undefined : lines[at - dropped];
      if (at !== undefined && before !== undefined) lines[at - dropped] = { ...before, text: before.text + text };
      else if (!isLast || text !== "") lines.push({ stream: chunk.stream, epoch: chunk.epoch, at: chunk.at, text });
      if (!isLast) open.delete(key);
      else if (at === undefined && text !== "") open.set(key, dropped + lines.length - 1);
    }
  };

  return {
    lines: () => lines,
    dropped: () => dropped,
    version: () => version,
    add: (chunks) => {
      for (const chunk of chunks) addChunk(chunk);
      if (lines.length > LINES_MAX + DROP) {
        dropped += lines.length - LINES_MAX;
        lines = lines.slice(-LINES_MAX);
      }
      version++;
      for (const listener of listeners) listener();
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** The indexes of the lines that contain the text, whatever the case. */
export function findLines(lines: readonly LogLine[], text: string): readonly number[] {
  const wanted = text.toLowerCase();
  if (wanted === "") return [];
  const found: number[] = [];
  for (const [index, line] of lines.entries()) if (line.text.toLowerCase().includes(wanted)) found.push(index);
  return found;
}
