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

/** Another object after each change; the lines themselves are changed in place. */
export type LogView = { readonly lines: readonly LogLine[]; readonly dropped: number };

export type LogStore = {
  readonly view: () => LogView;
  readonly add: (chunks: readonly LogChunk[]) => void;
  readonly clear: () => void;
  /** Told at most once a frame: a job may write more often than a screen shows. */
  readonly subscribe: (listener: () => void) => () => void;
};

/** What is open of one stream of one attempt. */
type Open = {
  /** The place of its unfinished line, counted from the very first line. */
  line: number | undefined;
  /** A chunk may end in the middle of a character. */
  readonly decoder: TextDecoder;
};

function textOf(chunk: LogChunk, { decoder }: Open): string {
  const { text, base64 } = chunk;
  if (base64 === undefined) return decoder.decode() + text;
  return decoder.decode(
    Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)),
    { stream: true },
  );
}

export function createLogStore(): LogStore {
  let lines: LogLine[] = [];
  let dropped = 0;
  let view: LogView = { lines, dropped };
  let frame: number | undefined;
  const streams = new Map<string, Open>();
  const listeners = new Set<() => void>();

  const openOf = (chunk: LogChunk): Open => {
    const key = `${chunk.epoch} ${chunk.stream}`;
    const open = streams.get(key) ?? { line: undefined, decoder: new TextDecoder() };
    streams.set(key, open);
    return open;
  };
  const addChunk = (chunk: LogChunk): void => {
    const open = openOf(chunk);
    const parts = textOf(chunk, open).split("\n");
    for (const [index, text] of parts.entries()) {
      const isLast = index === parts.length - 1;
      const before = open.line === undefined ? undefined : lines[open.line - dropped];
      if (open.line !== undefined && before !== undefined)
        lines[open.line - dropped] = { ...before, text: before.text + text };
      else if (!isLast || text !== "") lines.push({ stream: chunk.stream, epoch: chunk.epoch, at: chunk.at, text });
      if (!isLast) open.line = undefined;
      else if (before === undefined) open.line = text === "" ? undefined : dropped + lines.length - 1;
    }
  };
  const tell = (): void => {
    view = { lines, dropped };
    frame ??= requestAnimationFrame(() => {
      frame = undefined;
      for (const listener of listeners) listener();
    });
  };

  return {
    view: () => view,
    add: (chunks) => {
      for (const chunk of chunks) addChunk(chunk);
      if (lines.length > LINES_MAX + DROP) {
        dropped += lines.length - LINES_MAX;
        lines = lines.slice(-LINES_MAX);
      }
      tell();
    },
    clear: () => {
      lines = [];
      dropped = 0;
      streams.clear();
      tell();
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
