// SPDX-License-Identifier: Apache-2.0
// Connections that are dead without an end (a firewall that forgot them, a peer that lost its power): found by a call that gets
// no answer, and with it whatever else waits on them.

import assert from "node:assert/strict";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { test } from "node:test";
import { CALL_TIMEOUT_MS, Link } from "../../src/agent/link.ts";
import { createClient } from "../../src/client/client.ts";
import { defaultConfig } from "../../src/controller/context.ts";
import { systemClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";

test("half-open connections are found by the next call, and a long poll on them is asked anew at once", async (t) => {
  const stack = cleanupOf(t);
  const answering = http.createServer((_, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ status: "ok", version: "1", now: new Date().toISOString() }));
  });
  await new Promise<void>((resolve) => answering.listen(0, "127.0.0.1", resolve));
  stack.defer(() => new Promise<void>((resolve) => void answering.close(() => resolve())));
  // Takes what comes and says nothing, as long as the hole is there.
  let isHole = true;
  const all = new Set<net.Socket>();
  const proxy = net.createServer((socket) => {
    all.add(socket.on("error", () => {}));
    if (isHole) return void socket.resume();
    const through = net.connect((answering.address() as AddressInfo).port, "127.0.0.1");
    all.add(through.on("error", () => {}));
    socket.pipe(through).pipe(socket);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  stack.defer(() => {
    for (const socket of all) socket.destroy();
    return new Promise<void>((resolve) => void proxy.close(() => resolve()));
  });
  const baseUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const link = new Link({
    client: createClient({ baseUrl }),
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    callTimeoutMs: 200,
  });
  const { signal } = new AbortController();
  // Without the other call it would wait for longer than any test.
  const poll = link.call("health", {}, { signal, timeoutMs: 3_600_000, isLongPoll: true });
  const beat = link.call("health", {}, { signal });
  await until("both are in the hole", () => all.size >= 2);
  isHole = false;
  assert.deepEqual([(await beat).status, (await poll).status], ["ok", "ok"]);
});

test("a dead line is found within 20 seconds: a heartbeat and the patience for its answer", () => {
  assert.ok(defaultConfig.heartbeatMs + CALL_TIMEOUT_MS <= 20_000);
});
