// SPDX-License-Identifier: Apache-2.0
// Only a proved model is served: its process lives, it holds the port, its marker is right. Whatever else listens there is never
// spoken to, also when nobody controls the gateway any more.

import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { dial, freePort, get, openGateway, startGateway, startStub, type TestGateway } from "./kit.ts";

const seenOf = (front: TestGateway) => front.gateway.status().fronts[0] ?? assert.fail("no front");
const whyOf = (front: TestGateway): string => {
  const { proof } = seenOf(front);
  return proof?.kind === "failed" ? proof.why : "";
};

test("a stranger that takes the port of a dead model is never served, also when the control side is dead", async (t) => {
  const port = await freePort();
  const model = await startStub(t, "model", port);
  const { control } = await startGateway(t);
  const listen = { host: "127.0.0.1", port: await freePort() };
  const target = { kind: "serving", upstream: model.upstream } as const;
  assert.deepEqual(await control.set({ fronts: [{ listen, target }] }, 1), {
    kind: "applied",
    generation: 1,
    failed: [],
  });
  await until("it serves", async () => (await get(listen, "/who").catch(() => undefined))?.text === "model");
  // From here on nobody tells the gateway anything.
  const client = dial(t, listen);
  await model.kill();
  // The stranger says the same marker, as a model server that was started by hand would.
  const stranger = await startStub(t, "model", port);
  for (let index = 0; index < 50; index++) await assert.rejects(get(listen, "/who"), { code: "ECONNRESET" });
  await (await client).closed;
  const seen = await stranger.counters();
  assert.equal(seen.requests, 1, "only this look at the counters");
  const { fronts } = await control.status();
  assert.match(JSON.stringify(fronts[0]?.proof), /"failed","why":"the model's process \(pid \d+\) has ended/);
  assert.ok((fronts[0]?.counters.refused.unproved ?? 0) >= 50);
});

test("a stranger on the port of a living model that listens elsewhere is not served", async (t) => {
  const [model, stranger] = await Promise.all([startStub(t, "model"), startStub(t, "model")]);
  const front = await openGateway(t);
  await front.set({ kind: "serving", upstream: { ...model.upstream, address: stranger.address } });
  await until("it is seen", () => whyOf(front) !== "");
  assert.match(
    whyOf(front),
    new RegExp(`^port ${stranger.address.port} is held by .*pid ${stranger.process.pid}, started`),
  );
  await assert.rejects(get(front.listen, "/who"), { code: "ECONNRESET" });
  assert.equal((await stranger.counters()).requests, 1, "only this look at the counters");
});

test("clients that are held stay held until there is proof, and are then served", async (t) => {
  const stub = await startStub(t, "loading");
  await stub.set("marker=other");
  const front = await openGateway(t);
  await front.hold();
  const held = get(front.listen, "/who");
  await until("it is held", () => seenOf(front).counters.held === 1);
  await front.set({ kind: "serving", upstream: stub.upstream });
  await until("the proof fails", () => whyOf(front) === 'the marker is "other", not "loading"');
  await assert.rejects(get(front.listen, "/who"), { code: "ECONNRESET" });
  assert.equal(seenOf(front).counters.held, 1);
  await stub.set("marker=loading");
  assert.equal((await held).text, "loading");
});

test("a marker that turns wrong is refused until it is right again, and the reason is told", async (t) => {
  const stub = await startStub(t, "right");
  const front = await openGateway(t, { markerEveryMs: 20 });
  await front.serve(stub.upstream, { httpStatus: true });
  assert.equal((await get(front.listen, "/who")).text, "right");
  for (const [wrong, why] of [
    ["marker=wrong", /^the marker is "wrong", not "right"$/],
    ["status=500", /^the marker was not told: status 500$/],
  ] as const) {
    await stub.set(wrong);
    await until("it is seen", () => whyOf(front) !== "");
    assert.match(whyOf(front), why);
    const { status, text } = await get(front.listen, "/who");
    assert.equal(status, 503);
    assert.match(text, new RegExp(why.source.slice(0, -1)));
    await stub.set("marker=right&status=200");
    await until("the proof is back", () => seenOf(front).proof?.kind === "proved");
    assert.equal((await get(front.listen, "/who")).text, "right");
  }
  assert.ok(seenOf(front).counters.refused.unproved >= 2);
});

test("a model that is too busy to say its marker, but holds its socket, goes on being served", async (t) => {
  const stub = await startStub(t, "busy");
  const front = await openGateway(t, { markerEveryMs: 10, probeWithinMs: 50 });
  await front.serve(stub.upstream);
  await stub.set("status=0");
  const before = (await stub.counters()).requests;
  await until("it was asked some times", async () => (await stub.counters()).requests > before + 10);
  assert.equal((await get(front.listen, "/who")).text, "busy");
  assert.equal(seenOf(front).proof?.kind, "proved");
});

test("the death of the model is seen by the next connection, without waiting for a look", async (t) => {
  const stub = await startStub(t, "mortal");
  const front = await openGateway(t, { markerEveryMs: 3_600_000 });
  await front.serve(stub.upstream);
  assert.equal((await get(front.listen, "/who")).text, "mortal");
  await stub.kill();
  await assert.rejects(get(front.listen, "/who"), { code: "ECONNRESET" });
  const { refused } = seenOf(front).counters;
  assert.deepEqual([refused.unproved, refused["connect-failed"]], [1, 0]);
});

test("an identity of another start of the same pid proves nothing", async (t) => {
  const stub = await startStub(t, "same");
  const front = await openGateway(t);
  const identity = { ...stub.identity, startTicks: String(Number(stub.identity.startTicks) - 1) };
  await front.set({ kind: "serving", upstream: { ...stub.upstream, identity } });
  await until("it is seen", () => whyOf(front) !== "");
  await assert.rejects(get(front.listen, "/who"), { code: "ECONNRESET" });
});

test("while a connection is made the model dies and a stranger comes: it gets no byte of it", async (t) => {
  const port = await freePort();
  const model = await startStub(t, "model", port, 1);
  const front = await openGateway(t, { markerEveryMs: 3_600_000 });
  await front.serve(model.upstream);
  // It takes no more connections: the kernel asks again after a second, and by then somebody else is there.
  model.process.kill("SIGSTOP");
  const filling = Array.from({ length: 6 }, () => net.connect(port, "127.0.0.1").on("error", () => {}));
  t.after(() => filling.forEach((socket) => socket.destroy()));
  await until("its queue is full", () => filling.filter(({ connecting }) => !connecting).length >= 2);
  const client = await dial(t, front.listen);
  client.socket.write("GET /who HTTP/1.1\r\nhost: a\r\n\r\n");
  await until("the front connects", () => seenOf(front).counters.bytesFromClients > 0);
  await model.kill();
  const stranger = await startStub(t, "model", port);
  assert.equal(await client.closed, "ECONNRESET");
  assert.equal((await stranger.counters()).requests, 1, "only this look at the counters");
  assert.equal(seenOf(front).counters.refused.unproved, 1, JSON.stringify(seenOf(front).counters));
});
