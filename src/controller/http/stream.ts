// SPDX-License-Identifier: Apache-2.0
// Server-sent events: one event a value, a comment every few seconds so that proxies and clients see a live connection.
// A slow reader holds the generator back; nothing is buffered beyond one event. Source: WHATWG HTML § 9.2.

import { once } from "node:events";
import type { FastifyReply } from "fastify";

const KEEP_ALIVE_MS = 10_000;

export async function sendStream(
  reply: FastifyReply,
  values: AsyncGenerator<unknown>,
  signal: AbortSignal,
): Promise<FastifyReply> {
  // The first value is awaited before the header: a failure until then is still a proper error answer.
  let next = await values.next();
  reply.hijack();
  const response = reply.raw;
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  const keepAlive = setInterval(() => response.write(": alive\n\n"), KEEP_ALIVE_MS);
  try {
    while (next.done !== true && !signal.aborted) {
      const hasRoom = response.write(`data: ${JSON.stringify(next.value)}\n\n`);
      if (!hasRoom && !response.destroyed) await once(response, "drain", { signal }).catch(() => {});
      next = await values.next();
    }
  } catch {
    // The header is out: a broken stream is all that can be said, and the reader resumes with its cursor.
    response.destroy();
  } finally {
    clearInterval(keepAlive);
    await values.return(undefined);
    response.end();
  }
  return reply;
}
