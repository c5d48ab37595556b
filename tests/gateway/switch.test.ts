// SPDX-License-Identifier: Apache-2.0
// What becomes of connections when a front gets another model: none reaches the former one after the switch, running answers
// complete within the drain, idle connections are closed, and clients in a loop see no failure.

import assert from "node:assert/strict";
import http from "node:http";
import { test, type TestContext } from "node:test";
import { cleanupOf } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";
import { dial, get, leave, openGateway, rawServer, startStub, type TestGateway } from "./kit.ts";

const countersOf = (front: TestGateway) => front.gateway.status().fronts[0]?.counters ?? assert.fail("no front");
const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;

test("new connections during a switch never reach the former model after it", async (t) => {
  const [old, next] = await Promise.all([startStub(t, "old"), startStub(t, "next")]);
  const front = await openGateway(t);
  await front.serve(old.upstream);
  let isSwitched = false;
  const over = new AbortController();
  const wrong: string[] = [];
  let count = 0;
  const client = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const wasSwitched = isSwitched;
      const { text } = await get(front.listen, "/who");
      count++;
      if (wasSwitched && text !== "next") wrong.push(text);
    }
  };
  const clients = Array.from({ length: 16 }, client);
  await until("they are at it", () => count > 100);
  await front.hold({ drainMs: 5000 });
  isSwitched = true;
  await until("they are held", () => countersOf(front).held === 16);
  await front.serve(next.upstream);
  const before = count;
  await until("they go on", () => count > before + 100);
  over.abort();
  await Promise.all(clients);
  assert.deepEqual(wrong, []);
  assert.equal(countersOf(front).cut, 0);
});

test("a connection that has not carried a byte goes over to the next model", async (t) => {
  const [old, next] = await Promise.all([startStub(t, "old"), startStub(t, "next")]);
  const front = await openGateway(t);
  await front.serve(old.upstream);
  const client = await dial(t, front.listen);
  await until("the former model has it", async () => (await old.counters()).connections > 2);
  await front.serve(next.upstream, { drainMs: 0 });
  client.socket.write(ask("/who"));
  await until("the next model answers", () => client.text().endsWith("next"));
});

test("an idle connection is closed at the switch, one whose model is thinking is not", async (t) => {
  const stub = await startStub(t, "old");
  const front = await openGateway(t);
  await front.serve(stub.upstream);
  const [idle, thinking, streaming] = [
    await dial(t, front.listen),
    await dial(t, front.listen),
    await dial(t, front.listen),
  ];
  idle.socket.write(ask("/who"));
  await until("the answer came", () => idle.text().endsWith("old"));
  thinking.socket.write(ask("/slow?ms=600"));
  // A token is there, the next comes long after the switch.
  streaming.socket.write(ask("/stream?everyMs=600&count=2"));
  await until("a token came", () => streaming.text().includes("data: old 0"));
  await front.hold({ drainMs: 10_000 });
  await until("the idle one is closed", () => idle.isEnded());
  assert.equal(await leave(idle), "");
  assert.equal(countersOf(front).closedIdle, 1);
  await until("the answer came", () => thinking.text().endsWith("old"));
  await until("the stream is whole", () => streaming.text().endsWith("data: [DONE]\n\n\r\n0\r\n\r\n"));
  // Answered, each is closed too.
  await until("all are closed", () => thinking.isEnded() && streaming.isEnded());
});

test("a request that crosses the close of its connection is not answered by half, but fails at once", async (t) => {
  const stub = await startStub(t, "old");
  const front = await openGateway(t);
  await front.serve(stub.upstream);
  const client = await dial(t, front.listen);
  client.socket.write(ask("/who"));
  await until("the answer came", () => client.text().endsWith("old"));
  await front.hold();
  await until("it is closed", () => client.isEnded());
  const before = client.text();
  // Node looks at a connection whose other side has ended only when it writes.
  let isClosed = false;
  void client.closed.then(() => (isClosed = true));
  await until("it fails", () => {
    if (!isClosed) client.socket.write(ask("/who"));
    return isClosed;
  });
  assert.match(await client.closed, /ECONNRESET|EPIPE/);
  assert.equal(client.text(), before);
  assert.equal((await stub.counters()).requests <= 3, true);
});

test("a stream that runs when the switch begins completes within the drain", async (t) => {
  const [old, next] = await Promise.all([startStub(t, "old"), startStub(t, "next")]);
  const front = await openGateway(t);
  await front.serve(old.upstream);
  const streams = Array.from({ length: 10 }, () => get(front.listen, "/stream?count=50&everyMs=20"));
  await until("they run", () => countersOf(front).bytesFromUpstream > 2000);
  await front.hold({ drainMs: 30_000 });
  await front.serve(next.upstream, { drainMs: 30_000 });
  for (const { text } of await Promise.all(streams)) {
    assert.equal(text.match(/data: old/g)?.length, 50);
    assert.ok(text.endsWith("data: [DONE]\n\n"));
  }
  assert.equal(countersOf(front).cut, 0);
  assert.equal((await get(front.listen, "/who")).text, "next");
});

test("an endless stream ends with the drain, as a reset at both ends", async (t) => {
  const stub = await startStub(t, "endless");
  const front = await openGateway(t);
  await front.serve(stub.upstream);
  const client = await dial(t, front.listen);
  client.socket.write(ask("/stream"));
  await until("it runs", () => client.text().includes("data: endless 3"));
  const began = performance.now();
  await front.hold({ drainMs: 300 });
  const atSwitch = client.text().length;
  assert.equal(await client.closed, "ECONNRESET");
  const tookMs = performance.now() - began;
  assert.ok(tookMs >= 290 && tookMs < 2000, `after ${tookMs} ms`);
  assert.ok(client.text().length > atSwitch + 100, "it went on within the drain");
  assert.equal(countersOf(front).cut, 1);
  await until("the model sees it", async () => (await stub.counters()).resets === 1);
});

test("a switch that is taken back lets the running answers run", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.serve(server.upstream);
  const client = await dial(t, front.listen);
  client.socket.write("a question");
  const peer = await until("the upstream has it", () => server.accepted[0]);
  await front.hold({ drainMs: 200 });
  const began = performance.now();
  await front.serve(server.upstream);
  await until("the drain would have ended", () => performance.now() - began > 400);
  peer.socket.end("the answer");
  await until("the client has it", () => client.text() === "the answer");
});

type Tally = { done: number; again: number; readonly failed: string[]; readonly wrong: string[] };

/** Asks again and again, as HTTP clients do: once more only where a reused connection closed before any byte of the answer. */
async function loop(front: TestGateway, tally: Tally, agent: http.Agent | false, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const path = `/who?${tally.done}`;
    try {
      const { status, text } = await askOnce(front, path, agent, tally);
      if (status !== 200 || !text.startsWith("model-")) tally.wrong.push(text);
      tally.done++;
    } catch (error) {
      tally.failed.push(String(error));
    }
  }
}

const used = new WeakSet<object>();

function askOnce(front: TestGateway, path: string, agent: http.Agent | false, tally: Tally) {
  return new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    const request = http.get({ ...front.listen, path, agent }, (response) => {
      let text = "";
      response.on("data", (piece: Buffer) => {
        text += String(piece);
      });
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode, text }));
    });
    let isReused = false;
    let isAnswered = false;
    request.once("response", () => {
      isAnswered = true;
    });
    // Not request.reusedSocket: it stays false where a request waited for the connection of the one before.
    request.once("socket", (socket) => {
      isReused = used.has(socket);
      used.add(socket);
    });
    request.on("error", (error) => {
      if (!isReused || isAnswered) return reject(error);
      tally.again++;
      askOnce(front, path, agent, tally).then(resolve, reject);
    });
  });
}

function newAgent(t: TestContext): http.Agent {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  cleanupOf(t).defer(() => agent.destroy());
  return agent;
}

test("16 clients in a loop through 100 switches: no request fails, with and without kept connections", async (t) => {
  const stubs = await Promise.all([startStub(t, "model-0"), startStub(t, "model-1")]);
  const front = await openGateway(t);
  await front.serve(stubs[0].upstream);
  const tally: Tally = { done: 0, again: 0, failed: [], wrong: [] };
  let isOver = false;
  const agents = Array.from({ length: 8 }, () => newAgent(t));
  const clients = [...agents, ...agents.map(() => false as const)].map((agent) =>
    loop(front, tally, agent, () => isOver),
  );
  for (let index = 1; index <= 100; index++) {
    const before = tally.done;
    await until("the clients are at it", () => tally.done > before + 50);
    await front.hold({ drainMs: 10_000 });
    await until("the former model has nothing to do", () => front.gateway.status().fronts[0]?.draining.length === 0);
    await front.serve((index % 2 === 0 ? stubs[0] : stubs[1]).upstream);
  }
  isOver = true;
  await Promise.all(clients);
  assert.deepEqual(tally.failed, []);
  assert.deepEqual(tally.wrong, []);
  assert.equal(countersOf(front).cut, 0);
  t.diagnostic(`${tally.done} requests, ${tally.again} sent again`);
});

test("a front that is in the table no more listens no longer; what runs through it completes", async (t) => {
  const stub = await startStub(t, "removed");
  const front = await openGateway(t);
  await front.serve(stub.upstream);
  const stream = get(front.listen, "/stream?count=30&everyMs=10");
  await until("it runs", () => countersOf(front).bytesFromUpstream > 200);
  await front.gateway.set({ fronts: [] }, 100);
  await assert.rejects(get(front.listen, "/who"), { code: "ECONNREFUSED" });
  assert.equal(front.gateway.status().closing.length, 1);
  assert.ok((await stream).text.endsWith("data: [DONE]\n\n"));
  await until("nothing is left", () => front.gateway.status().closing.length === 0);
});

test("the end of the gateway has a drain of its own, also for what drains already", async (t) => {
  const server = await rawServer(t);
  const front = await openGateway(t);
  await front.serve(server.upstream);
  const client = await dial(t, front.listen);
  client.socket.write("a question");
  await until("the upstream has it", () => server.accepted[0]?.text() === "a question");
  await front.hold({ drainMs: 3_600_000 });
  const held = await dial(t, front.listen);
  await until("another waits", () => countersOf(front).held === 1);
  const began = performance.now();
  await front.gateway.close(200);
  const tookMs = performance.now() - began;
  assert.ok(tookMs >= 190 && tookMs < 5000, `after ${tookMs} ms`);
  assert.deepEqual([await client.closed, await held.closed], ["ECONNRESET", "ECONNRESET"]);
});
