// SPDX-License-Identifier: Apache-2.0
// Requests that meet switches, crashes and cancels in any order, with limits cut short: each of them ends, with an answer or an
// error, and none waits for ever.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dial, type Dialled, openGateway, rawServer, type RawServer, type TestGateway } from "../gateway/kit.ts";
import { until } from "../kit/until.ts";

/** mulberry32: the same orders for the same seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

type Ended = { readonly client: Dialled; isCancelled: boolean };

type World = {
  readonly front: TestGateway;
  readonly servers: readonly RawServer[];
  readonly request: () => Promise<void>;
  readonly draw: () => number;
  readonly requests: Ended[];
};

const ORDERS = 10_000;
const OPEN_MAX = 24;

async function one({ front, servers, request, draw, requests }: World): Promise<void> {
  const server = servers[Math.floor(draw() * servers.length)] ?? assert.fail();
  const drained = { drainMs: 50 };
  switch (Math.floor(draw() * 8)) {
    case 0:
      return front.hold(drained);
    case 1:
      return front.set({ kind: "serving", upstream: server.upstream }, drained);
    case 2:
      return front.refuse("unloaded", drained);
    case 3:
      // A crash: every connection of it is reset, where Node can (an end that is still to be written makes it leak the handle).
      for (const { socket } of server.accepted)
        if (socket.writableEnded) socket.destroy();
        else if (!socket.destroyed) socket.resetAndDestroy();
      return;
    case 4: {
      const cancelled = requests.findLast(({ client }) => !client.socket.destroyed);
      if (cancelled === undefined) return;
      cancelled.isCancelled = true;
      cancelled.client.socket.destroy();
      return;
    }
    default:
      if (requests.filter(({ client }) => !client.socket.destroyed).length < OPEN_MAX) await request();
  }
}

test("case 15: in 10,000 random orders of request, load, unload, crash and cancel every request ends", async (t) => {
  const servers = [];
  for (let index = 0; index < 2; index++)
    servers.push(
      await rawServer(t, (socket) => {
        socket.on("data", () => void socket.write("x"));
        socket.on("end", () => void socket.end());
      }),
    );
  const front = await openGateway(t, { heldMax: 8, heldMsMax: 400 });
  const requests: Ended[] = [];
  const request = async (): Promise<void> => {
    const client = await dial(t, front.listen);
    client.socket.end("a request");
    requests.push({ client, isCancelled: false });
  };
  const world: World = { front, servers, request, draw: chance(20261201), requests };
  await front.hold();
  for (let order = 0; order < ORDERS; order++) await one(world);
  await until("every request has ended", () => requests.every(({ client }) => client.socket.destroyed));
  const answered = requests.filter(({ client, isCancelled }) => !isCancelled && client.text() !== "").length;
  assert.ok(requests.length > 1_000 && answered > 100, `${answered} of ${requests.length} were answered`);
  // And it is not wedged: the next one is served.
  await front.set({ kind: "serving", upstream: servers[0]?.upstream ?? assert.fail() });
  const last = await dial(t, front.listen);
  last.socket.end("a request");
  await last.closed;
  assert.equal(last.text(), "x");
});
