// SPDX-License-Identifier: Apache-2.0
// Reads a text/event-stream body: the data of each event, comments (keep-alives) left out. Source: WHATWG HTML § 9.2.

import { Failure } from "../std/errors.ts";

/** No event of ours is larger; more means that it is not our stream. */
const EVENT_LENGTH_MAX = 4 * 1024 * 1024;

export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onAlive?: () => void,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let pending = "";
  for await (const piece of piecesOf(body)) {
    onAlive?.();
    pending += decoder.decode(piece, { stream: true });
    if (pending.length > EVENT_LENGTH_MAX)
      throw new Failure("bad_answer", "an event of the stream is larger than any of ours");
    const events = pending.split(/\r?\n\r?\n/);
    pending = events.pop() ?? "";
    for (const event of events) {
      const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
      if (lines.length > 0) yield lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
    }
  }
}

/** With a reader: not every browser can iterate a stream. Whoever stops early gives the connection back. */
async function* piecesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    // A stream that broke has nothing left to cancel and says so.
    await reader.cancel().catch(() => undefined);
  }
}
