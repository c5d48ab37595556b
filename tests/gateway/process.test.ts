// SPDX-License-Identifier: Apache-2.0
// The gateway as a process: its control socket, its end, and that it goes on when whoever controls it dies.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gatewayControl } from "../../src/gateway/control-client.ts";
import { LINE_BYTES_MAX } from "../../src/gateway/control-lines.ts";
import type { Front } from "../../src/gateway/table.ts";
import { isAlive } from "../../src/std/process.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createHome } from "../kit/command.ts";
import { until } from "../kit/until.ts";
import { dial, freePort, get, startGateway, startStub, type Stub } from "./kit.ts";

async function frontOf(stub: Stub, more: Partial<Front> = {}): Promise<Front> {
  return {
    listen: { host: "127.0.0.1", port: await freePort() },
    target: { kind: "serving", upstream: stub.upstream },
    ...more,
  };
}

test("50 streams run on when the process that controls the gateway is killed, and the next one takes over", async (t) => {
  const stub = await startStub(t, "streams");
  const { control, path, process: gateway } = await startGateway(t);
  const front = await frontOf(stub);
  const told = JSON.stringify({ fronts: [front] });
  const controller = spawn(
    process.execPath,
    [fileURLToPath(new URL("controller-main.ts", import.meta.url)), path, told],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  cleanupOf(t).defer(() => void controller.kill("SIGKILL"));
  await once(controller.stdout, "data");
  await until("it serves", async () => (await control.status()).fronts[0]?.proof?.kind === "proved");
  const streams = Array.from({ length: 50 }, () => get(front.listen, "/stream?count=60&everyMs=20"));
  await until("they run", async () => (await control.status()).fronts[0]?.counters.open === 50);
  controller.kill("SIGKILL");
  await once(controller, "exit");
  assert.equal((await get(front.listen, "/who")).text, "streams");
  const status = await gatewayControl(path).status();
  assert.equal(status.pid, gateway.pid);
  assert.ok(status.identity !== null && isAlive(status.identity));
  assert.deepEqual(await control.set({ fronts: [front] }, (status.generation ?? 0) + 1), {
    kind: "applied",
    generation: 8,
    failed: [],
  });
  for (const { text } of await Promise.all(streams)) assert.equal(text.match(/data: streams/g)?.length, 60);
});

test("an older table is refused and changes nothing; the same generation is applied again", async (t) => {
  const stub = await startStub(t, "model");
  const { control } = await startGateway(t);
  const front = await frontOf(stub);
  await control.set({ fronts: [front] }, 5);
  assert.deepEqual(await control.set({ fronts: [] }, 4), { kind: "stale", generation: 5 });
  assert.deepEqual(
    (await control.status()).fronts.map(({ target }) => target),
    [front.target],
  );
  assert.deepEqual(await control.set({ fronts: [front] }, 5), { kind: "applied", generation: 5, failed: [] });
});

test("a port that somebody has is told with who it is; the rest of the table holds, and a later try takes it", async (t) => {
  const [stub, holder] = await Promise.all([startStub(t, "model"), startStub(t, "holder")]);
  const { control } = await startGateway(t);
  const [good, bad] = [await frontOf(stub), { ...(await frontOf(stub)), listen: holder.address }];
  const applied = await control.set({ fronts: [bad, good] }, 1);
  assert.ok(applied.kind === "applied");
  assert.deepEqual(
    applied.failed.map(({ listen }) => listen),
    [`127.0.0.1:${holder.address.port}`],
  );
  assert.match(
    applied.failed[0]?.why ?? "",
    new RegExp(`is held by .*\\(pid ${holder.process.pid}, started .*http-stub-main`),
  );
  await until(
    "the other serves",
    async () => (await get(good.listen, "/who").catch(() => undefined))?.text === "model",
  );
  await holder.kill();
  assert.deepEqual(await control.set({ fronts: [bad, good] }, 2), { kind: "applied", generation: 2, failed: [] });
  await until("it serves", async () => (await get(bad.listen, "/who").catch(() => undefined))?.text === "model");
});

test("only the account itself may open the control socket, and what it asks is judged as a whole", async (t) => {
  const { control, path } = await startGateway(t);
  assert.equal(fs.statSync(path).mode & 0o777, 0o600);
  const ask = async (line: string): Promise<string> => {
    const socket = net.connect(path);
    cleanupOf(t).defer(() => void socket.destroy());
    socket.on("error", () => {});
    socket.write(line);
    const [said] = (await Promise.race([once(socket, "data"), once(socket, "close")])) as [unknown];
    return Buffer.isBuffer(said) ? said.toString() : "closed";
  };
  for (const wrong of [
    "no json\n",
    "{}\n",
    "null\n",
    '{"set":{"fronts":[]}}\n',
    '{"set":{"fronts":[]},"generation":-1}\n',
  ])
    assert.match(await ask(wrong), /^\{"ok":false,"code":"invalid_request"/, wrong);
  assert.match(await ask('{"status":true}\n{"metrics":true}\n'), /^\{"ok":true,"status":\{/);
  assert.equal(await ask("x".repeat(LINE_BYTES_MAX + 1)), "closed");
  const listen = { host: "127.0.0.1", port: 0 };
  await assert.rejects(control.set({ fronts: [{ listen, target: { kind: "holding", why: "" } }] }, 1), {
    code: "invalid_request",
    details: [{ place: "/fronts/0/listen/port", problem: "must be 1 to 65535" }],
  });
  assert.equal((await control.status()).generation, null);
});

test("one gateway has the socket; a killed one leaves nothing in the way", async (t) => {
  const first = await startGateway(t);
  const home = createHome(t);
  const second = await home.run(["gateway", "--control", first.path]);
  assert.equal(second.code, 123);
  assert.match(second.stderr, new RegExp(`another gateway \\(pid ${first.process.pid}\\)`));
  first.process.kill("SIGKILL");
  await once(first.process, "exit");
  await assert.rejects(first.control.status(), { code: "gateway_unreachable" });
  const third = home.start(["gateway", "--control", first.path]);
  await until("it answers", () => first.control.status().catch(() => undefined));
  third.process.kill("SIGTERM");
  assert.equal(await third.ended, 0);
});

test("the plain form serves one upstream, counts, and ends with 0 after its drain", async (t) => {
  const stub = await startStub(t, "plain");
  const home = createHome(t);
  const listen = { host: "127.0.0.1", port: await freePort() };
  const control = `${home.directory}/control.sock`;
  const running = home.start([
    "gateway",
    `--listen=127.0.0.1:${listen.port}`,
    `--upstream=127.0.0.1:${stub.address.port}`,
    "--marker=plain",
    "--drain=10s",
    `--control=${control}`,
  ]);
  await until("it serves", async () => (await get(listen, "/who").catch(() => undefined))?.text === "plain");
  const metrics = await gatewayControl(control).metrics();
  assert.match(metrics, new RegExp(`^holdfast_gateway_proved\\{listen="127.0.0.1:${listen.port}"\\} 1$`, "m"));
  assert.match(metrics, /^holdfast_gateway_upstream_connect_seconds_count\{listen="[^"]+"\} [1-9]/m);
  const stream = get(listen, "/stream?count=40&everyMs=20");
  const idle = await dial(t, listen);
  idle.socket.write("GET /who HTTP/1.1\r\nhost: a\r\n\r\n");
  await until("it is answered", () => idle.text().endsWith("plain"));
  await until("the stream runs", async () => (await stub.counters()).connections > 3);
  running.process.kill("SIGTERM");
  await until("the idle connection is closed", () => idle.isEnded());
  idle.socket.end();
  assert.match((await stream).text, /\[DONE\]/);
  assert.equal(await running.ended, 0);
  await assert.rejects(get(listen, "/who"), { code: "ECONNREFUSED" });
});

test("the plain form says what is wrong with its arguments, and who has its port", async (t) => {
  const holder = await startStub(t, "holder");
  const home = createHome(t);
  const run = (...args: readonly string[]) => home.run(["gateway", ...args]);
  const nothing = await run();
  assert.deepEqual(
    [nothing.code, nothing.stderr.split("\n")[0]],
    [64, "holdfast: a gateway needs --listen and --upstream, or --control"],
  );
  const half = await run("--listen", "8011");
  assert.match(half.stderr, /--listen: 8011 is not HOST:PORT\n.*--upstream: is missing/);
  const taken = await run("--listen", `127.0.0.1:${holder.address.port}`, "--upstream", "127.0.0.1:1");
  assert.equal(taken.code, 81);
  assert.match(taken.stderr, new RegExp(`is held by .*pid ${holder.process.pid}`));
});
