// SPDX-License-Identifier: Apache-2.0
// Connections that come while no model is proved: held in order, within limits, or refused with the reason.

import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { dial, get, leave, openGateway, rawServer, startStub, type TestGateway } from "./kit.ts";

const countersOf = (front: TestGateway) => front.gateway.status().fronts[0]?.counters ?? assert.fail("no front");
const REQUEST = "GET /who HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

test("connections that come while the scene switches wait, and go to the model in the order in which they came", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.hold();
  const clients = [];
  for (let index = 0; index < 20; index++) {
    const client = await dial(t, front.listen);
    client.socket.write(`client ${index}`);
    await until("it is held", () => countersOf(front).held === index + 1);
    clients.push(client);
  }
  assert.equal(server.accepted.length, 0);
  await front.serve(server.upstream);
  await until("all are served", () => server.accepted.length === 20);
  await until("all have said who they are", () => server.accepted.every(({ text }) => text() !== ""));
  assert.deepEqual(
    server.accepted.map(({ text }) => text()),
    clients.map((_, index) => `client ${index}`),
  );
  assert.equal(countersOf(front).held, 0);
  assert.equal(countersOf(front).heldTotal, 20);
});

test("what a held client has sent arrives whole, however much it is, and waits within its bound", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.hold();
  const client = await dial(t, front.listen);
  const text = "0123456789".repeat(300_000);
  client.socket.end(text);
  await until("it sends", () => countersOf(front).bytesFromClients > 0);
  assert.ok(front.gateway.waitingBytes <= 256 * 1024);
  await front.serve(server.upstream);
  await until("all of it came", () => server.accepted[0]?.isEnded());
  assert.ok(server.accepted[0]?.text() === text);
});

test("a connection beyond the bound is reset and counted; the others stay held", async (t) => {
  const stub = await startStub(t, "bounded");
  const front = await openGateway(t, { heldMax: 3 });
  await front.hold();
  const held = [];
  for (let index = 0; index < 3; index++) held.push(await dial(t, front.listen));
  await until("three are held", () => countersOf(front).held === 3);
  const fourth = await dial(t, front.listen);
  assert.equal(await fourth.closed, "ECONNRESET");
  assert.equal(countersOf(front).refused["holding-full"], 1);
  for (const { socket } of held) socket.write(REQUEST);
  await front.serve(stub.upstream);
  for (const client of held) {
    await until("it is answered", () => client.isEnded());
    assert.equal(await leave(client), "");
    assert.match(client.text(), /200 OK[^]*bounded/);
  }
});

test("a connection that was held for its longest time is refused, each after its own time", async (t) => {
  const front = await openGateway(t, { heldMsMax: 150 });
  await front.hold();
  const began = performance.now();
  const first = await dial(t, front.listen);
  await until("half of the time is over", () => performance.now() - began > 75);
  const second = await dial(t, front.listen);
  assert.equal(await first.closed, "ECONNRESET");
  assert.ok(performance.now() - began >= 149);
  assert.equal(countersOf(front).held, 1);
  assert.equal(await second.closed, "ECONNRESET");
  assert.equal(countersOf(front).refused["held-too-long"], 2);
});

test("a held client that leaves is dropped: by an abort, and by an end after a request", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.hold();
  const aborted = await dial(t, front.listen);
  const ended = await dial(t, front.listen);
  const asked = await dial(t, front.listen);
  const raw = await dial(t, front.listen);
  asked.socket.write(REQUEST);
  raw.socket.write("\u0001 no HTTP");
  await until("all are held", () => countersOf(front).held === 4);
  aborted.socket.resetAndDestroy();
  ended.socket.end();
  asked.socket.end();
  // Another protocol may well end its side and wait for the answer.
  raw.socket.end();
  await until("three are dropped", () => countersOf(front).held === 1);
  await front.serve(server.upstream);
  await until("the last one is served", () => server.accepted[0]?.isEnded());
  assert.equal(server.accepted[0]?.text(), "\u0001 no HTTP");
  assert.equal(server.accepted.length, 1);
});

test("without a scene a connection is reset at once, and held ones are reset when the front refuses", async (t) => {
  const front = await openGateway(t);
  await front.hold();
  const held = await dial(t, front.listen);
  await until("it is held", () => countersOf(front).held === 1);
  await front.refuse("no scene is active");
  assert.equal(await held.closed, "ECONNRESET");
  const client = await dial(t, front.listen);
  assert.equal(await client.closed, "ECONNRESET");
  assert.equal(countersOf(front).refused.refusing, 2);
});

test("with httpStatus a refusal is a 503 that says why and when to come again", async (t) => {
  const front = await openGateway(t);
  await front.refuse("no scene is active", { httpStatus: true });
  const client = await dial(t, front.listen);
  client.socket.write(REQUEST);
  await until("it is answered", () => client.isEnded());
  assert.equal(await leave(client), "");
  assert.match(client.text(), /^HTTP\/1\.1 503 [^]*\r\nRetry-After: 5\r\n[^]*\r\n\r\nno scene is active\n$/);
  const got = await get(front.listen, "/");
  assert.equal(got.status, 503);
  assert.equal(got.text, "no scene is active\n");
  await until("nothing is left", () => countersOf(front).open === 0);
});

test("a model that is not there is a reset, and counted", async (t) => {
  const front = await openGateway(t);
  const nobody = net.createServer().listen(0, "127.0.0.1");
  await once(nobody, "listening");
  const { port } = nobody.address() as net.AddressInfo;
  nobody.close();
  await once(nobody, "close");
  await front.serve({ address: { host: "127.0.0.1", port }, model: "gone" });
  const client = await dial(t, front.listen);
  assert.equal(await client.closed, "ECONNRESET");
  assert.equal(countersOf(front).refused["connect-failed"], 1);
});
