// SPDX-License-Identifier: Apache-2.0
// What passes through a front is what was sent: bytes, ends, aborts and their pace, in both directions.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { test } from "node:test";
import { FLOW_BYTES_MAX } from "../../src/gateway/flow.ts";
import { patternHash, patternOf } from "../kit/pattern.ts";
import { until } from "../kit/until.ts";
import { dial, get, openGateway, rawServer, startStub, type TestGateway } from "./kit.ts";

const BULK_BYTES = 50_000_000;

test("50 MB come out as they went in, in both directions", async (t) => {
  const stub = await startStub(t, "bulk");
  const front = await openGateway(t);
  await front.serve(stub.upstream);
  const expected = patternHash(BULK_BYTES);
  const down = createHash("sha256");
  const request = http.get({ ...front.listen, path: `/bulk?bytes=${BULK_BYTES}`, agent: false });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  response.on("data", (piece: Buffer) => down.update(piece));
  await once(response, "end");
  assert.equal(down.digest("hex"), expected);

  const upload = http.request({ ...front.listen, path: "/sum", method: "POST", agent: false });
  const answered = once(upload, "response") as Promise<[http.IncomingMessage]>;
  for (const piece of patternOf(BULK_BYTES)) if (!upload.write(piece)) await once(upload, "drain");
  upload.end();
  const [answer] = await answered;
  assert.equal(String((await once(answer, "data"))[0]), expected);
  const { counters } = front.gateway.status().fronts[0] ?? assert.fail();
  assert.ok(counters.bytesFromClients > BULK_BYTES && counters.bytesFromUpstream > BULK_BYTES);
});

test("an end of one side leaves the other side open, either way", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.serve(server.upstream);
  const client = await dial(t, front.listen);
  client.socket.end("all of it");
  const peer = await until("the upstream has it", () => server.accepted[0]);
  await until("the upstream sees the end", () => peer.isEnded());
  assert.equal(peer.text(), "all of it");
  assert.equal(client.isEnded(), false);
  peer.socket.write("part one, ");
  await until("the client gets the first part", () => client.text() === "part one, ");
  peer.socket.end("part two");
  assert.equal(await client.closed, "");
  assert.equal(client.text(), "part one, part two");

  const second = await dial(t, front.listen);
  const server2 = await until("the upstream has it", () => server.accepted[1]);
  server2.socket.end("only this");
  await until("the client sees the end", () => second.isEnded());
  second.socket.end("and that");
  assert.equal(await server2.closed, "");
  assert.equal(server2.text(), "and that");
  await until("nothing is left", () => front.gateway.status().fronts[0]?.counters.open === 0);
});

test("an abort of one side is an abort at the other, either way", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.serve(server.upstream);
  const client = await dial(t, front.listen);
  client.socket.write("GET ");
  const peer = await until("the upstream has it", () => server.accepted[0]);
  client.socket.resetAndDestroy();
  assert.equal(await peer.closed, "ECONNRESET");

  const second = await dial(t, front.listen);
  const peer2 = await until("the upstream has it", () => server.accepted[1]);
  peer2.socket.resetAndDestroy();
  assert.equal(await second.closed, "ECONNRESET");
  await until("nothing is left", () => front.gateway.status().fronts[0]?.counters.open === 0);
});

test("an abort reaches the other side also after an end went the other way", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.serve(server.upstream);
  const client = await dial(t, front.listen);
  client.socket.end("question");
  const peer = await until("the upstream has it", () => server.accepted[0]);
  await until("the upstream sees the end", () => peer.isEnded());
  peer.socket.resetAndDestroy();
  assert.equal(await client.closed, "ECONNRESET");
});

test("a client that leaves in a pause of 10 s is seen by the model within 100 ms, as a reset", async (t) => {
  const stub = await startStub(t, "pause");
  const front = await openGateway(t);
  await front.serve(stub.upstream);
  const client = await dial(t, front.listen);
  client.socket.write("GET /stream?everyMs=10000 HTTP/1.1\r\nhost: a\r\n\r\n");
  await until("the first token came", () => client.text().includes("data: pause 0"));
  const left = performance.timeOrigin + performance.now();
  client.socket.resetAndDestroy();
  const seen = await until("the model sees it", async () => {
    const counters = await stub.counters();
    return counters.aborts > 0 ? counters : undefined;
  });
  assert.ok(seen.lastAbortMs - left < 100, `after ${seen.lastAbortMs - left} ms`);
  assert.equal(seen.resets, 1);
});

test("each event of a stream comes at once, alone", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.serve(server.upstream);
  const client = await dial(t, front.listen);
  const peer = await until("the upstream has it", () => server.accepted[0]);
  const tookMs: number[] = [];
  for (let index = 0; index < 200; index++) {
    // The next event is not sent before this one has come: what was kept back for more would come late or never.
    const began = performance.now();
    const came = once(client.socket, "data");
    peer.socket.write(`data: ${index}\n\n`);
    assert.equal(String((await came)[0]), `data: ${index}\n\n`);
    tookMs.push(performance.now() - began);
  }
  const median = tookMs.toSorted((a, b) => a - b)[100] ?? 0;
  assert.ok(median < 10, `an event took ${median} ms`);
});

test("200 connections at once are all served", async (t) => {
  const stub = await startStub(t, "many");
  const front = await openGateway(t);
  await front.serve(stub.upstream);
  const all = await Promise.all(Array.from({ length: 200 }, () => get(front.listen, "/slow?ms=300")));
  assert.equal(all.filter(({ text, status }) => text === "many" && status === 200).length, 200);
});

/** Waits until every buffer on the way is full; the bytes that passed. */
async function nothingMoves({ gateway }: TestGateway): Promise<number> {
  let last = -1;
  let quiet = 0;
  await until("nothing moves any more", () => {
    const { counters } = gateway.status().fronts[0] ?? assert.fail("no front");
    const passed = counters.bytesFromClients + counters.bytesFromUpstream;
    quiet = passed === last ? quiet + 1 : 0;
    last = passed;
    return quiet > 20;
  });
  return last;
}

test("a reader that stops costs no more than its bound, and stops the writer; the rest comes when it reads on", async (t) => {
  const total = 64 * 1024 * 1024;
  for (const direction of ["down", "up"] as const) {
    const server = await rawServer(t);
    const front = await openGateway(t);
    await front.serve(server.upstream);
    const client = await dial(t, front.listen);
    const peer = await until("the upstream has it", () => server.accepted[0]);
    const [writer, reader] = direction === "down" ? [peer.socket, client.socket] : [client.socket, peer.socket];
    reader.removeAllListeners("data");
    reader.pause();
    let received = 0;
    const piece = Buffer.alloc(1024 * 1024, "x");
    for (let sent = 0; sent < total; sent += piece.length) writer.write(piece);
    const passed = await nothingMoves(front);
    assert.ok(passed < total / 2, `${direction}: ${passed} bytes went on`);
    assert.ok(
      FLOW_BYTES_MAX <= 256 * 1024 && front.gateway.waitingBytes <= FLOW_BYTES_MAX,
      `${front.gateway.waitingBytes} bytes wait`,
    );
    reader.on("data", (bytes: Buffer) => {
      received += bytes.length;
    });
    reader.resume();
    await until("all of it came", () => received === total);
  }
});

test("readers that stop, many at once, get their own bytes and all of them when they go on", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.serve(server.upstream);
  const clients = await Promise.all(Array.from({ length: 6 }, () => dial(t, front.listen)));
  await until("all are served", () => server.accepted.length === clients.length);
  const sent = createHash("sha256");
  const hashes = clients.map(({ socket }) => {
    const hash = createHash("sha256");
    socket.removeAllListeners("data").on("data", (bytes: Buffer) => hash.update(bytes));
    return hash;
  });
  // First much at once, so that each connection has a buffer of its own.
  const first = Buffer.alloc(2_000_000, "first");
  sent.update(first);
  for (const { socket } of server.accepted) socket.write(first);
  await until("it came", () => front.gateway.status().fronts[0]?.counters.bytesFromUpstream === 6 * first.length);
  for (const { socket } of clients) socket.pause();
  // In pieces smaller than a read, one at a time, so that the one that the kernel does not take is such a piece too; then some more.
  let more = 4;
  for (const piece of patternOf(20_000 * 2000)) {
    for (let at = 0; at < piece.length && more > 0; at += 20_000) {
      const part = piece.subarray(at, at + 20_000);
      sent.update(part);
      for (const { socket } of server.accepted) socket.write(part);
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (front.gateway.waitingBytes > 6 * 10_000) more--;
    }
    if (more === 0) break;
  }
  assert.equal(more, 0, "the buffers of the kernel are full");
  for (const { socket } of server.accepted) socket.end();
  await Promise.all(clients.map(({ socket }) => once(socket.resume(), "end")));
  const expected = sent.digest("hex");
  for (const hash of hashes) assert.equal(hash.digest("hex"), expected);
});

test("a connection that is served has no timer: silence of any length is not cut", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.serve(server.upstream);
  const socketTimers = t.mock.method(net.Socket.prototype, "setTimeout");
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const clients = await Promise.all(Array.from({ length: 8 }, () => dial(t, front.listen)));
  await until("all are served", () => server.accepted.length === 8);
  for (const { socket } of clients) socket.write("a question");
  await until("all have asked", () => server.accepted.every(({ text }) => text() === "a question"));
  // until's own timer has ended.
  assert.equal(timers(), before);
  // A socket's own timer is no resource that keeps a process.
  assert.equal(socketTimers.mock.callCount(), 0);
});
