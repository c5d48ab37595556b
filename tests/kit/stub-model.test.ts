// SPDX-License-Identifier: Apache-2.0
// The stub does what it is told: what other tests blame a server for must be what the server does.

import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import { test, type TestContext } from "node:test";
import { holderOf, listListeners, reachedBy } from "../../src/std/listeners.ts";
import { defaultMarker, probeMarker } from "../../src/std/marker.ts";
import { readProcessStat } from "../../src/std/process.ts";
import { freePort, type RunningStub, startStub, type StubModelOptions } from "./stub-model.ts";
import { until } from "./until.ts";

type Told = Omit<StubModelOptions, "port" | "alias">;

async function start(t: TestContext, told: Told = {}): Promise<RunningStub & { readonly port: number }> {
  const port = await freePort();
  return { ...startStub(t, { port, alias: "red", ...told }), port };
}

async function startReady(t: TestContext, told: Told = {}) {
  const stub = await start(t, told);
  await until("it is ready", () => isReady(stub));
  return stub;
}

async function statusOf(url: string, init: RequestInit = {}): Promise<number | undefined> {
  try {
    const response = await fetch(url, init);
    await response.body?.cancel();
    return response.status;
  } catch {
    return undefined;
  }
}

const isReady = async ({ url }: RunningStub): Promise<boolean> => (await statusOf(`${url}/health`)) === 200;
const ask = (url: string, body: object, signal: AbortSignal | null = null): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body), signal });
const probe = async (port: number, alias: string): Promise<string> =>
  (await probeMarker({ host: "127.0.0.1", port }, defaultMarker(alias), 1000)).kind;

/** Nothing answers there any more. */
const isGone = (port: number) => async () => (await probe(port, "red")) === "silent";

/** Processor time in ticks, and bytes read. */
function work(pid: number): { readonly ticks: number; readonly read: number } {
  const fields = fs
    .readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /, "")
    .split(" ");
  const io = fs.readFileSync(`/proc/${pid}/io`, "latin1");
  return { ticks: Number(fields[11]) + Number(fields[12]), read: Number(/^rchar: (\d+)$/m.exec(io)?.[1]) };
}

test("says 503 while it loads, then who it is; its marker changes by SIGUSR2 and by POST /control", async (t) => {
  const stub = await start(t, { hangs: true, nextAlias: "blue" });
  assert.equal(await until("it listens", () => statusOf(`${stub.url}/health`)), 503);
  assert.equal(await probe(stub.port, "red"), "silent");
  await stub.control({ hangs: false });
  await until("it is ready", () => isReady(stub));
  assert.deepEqual([await probe(stub.port, "red"), await probe(stub.port, "blue")], ["equal", "other"]);
  stub.process.kill("SIGUSR2");
  await until("it is blue", async () => (await probe(stub.port, "blue")) === "equal");
  assert.equal((await stub.control({ alias: "green" })).alias, "green");
  assert.equal(await probe(stub.port, "green"), "equal");
  stub.process.kill("SIGTERM");
  assert.equal(await stub.ended, 0);
});

test("loads by computing, by reading a file, by printing, or by nothing that shows", async (t) => {
  const quiet = await start(t, { hangs: true });
  const cpu = await start(t, { hangs: true, loadBy: "cpu" });
  const file = await start(t, { hangs: true, loadBy: "file" });
  const output = await start(t, { hangs: true, loadBy: "output" });
  await Promise.all([quiet, cpu, file, output].map(({ url }) => until("it listens", () => statusOf(`${url}/health`))));
  const pidOf = (stub: RunningStub): number => stub.process.pid ?? 0;
  const before = [quiet, cpu, file].map((stub) => work(pidOf(stub)));
  await until("it computes", () => work(pidOf(cpu)).ticks - (before[1]?.ticks ?? 0) > 10);
  await until("it reads", () => work(pidOf(file)).read - (before[2]?.read ?? 0) > 10_000_000);
  await until("it prints", () => output.output().split("loading").length > 5);
  assert.ok(work(pidOf(quiet)).ticks - (before[0]?.ticks ?? 0) < 5);
  assert.equal((await quiet.stats()).isReady, false);
});

test("crashes at load, ends after it was ready, listens late or never, refuses for a while", async (t) => {
  const crashed = await start(t, { crashCode: 7, loadMs: 10 });
  const short = await start(t, { exitAfterMs: 50, exitCode: 9 });
  const late = await start(t, { listens: "ready", loadMs: 50 });
  const never = await start(t, { listens: "never", loadBy: "output", hangs: true });
  const refusing = await startReady(t, { refuseMs: 60_000 });
  assert.equal(await crashed.ended, 7);
  assert.match(crashed.output(), /error loading model/);
  assert.equal(await short.ended, 9);
  assert.equal(await until("it answers", () => statusOf(`${late.url}/health`)), 200);
  await until("it runs", () => never.output().includes("loading"));
  assert.deepEqual(reachedBy(listListeners(), "127.0.0.1", never.port), []);
  assert.equal(await statusOf(`${refusing.url}/v1/models`), 400);
  await refusing.control({ refuseMs: 0 });
  assert.equal(await statusOf(`${refusing.url}/v1/models`), 200);
});

test("a deaf one takes a connection and says nothing", async (t) => {
  const stub = await startReady(t);
  await stub.control({ isDeaf: true });
  assert.equal(await statusOf(`${stub.url}/health`, { signal: AbortSignal.timeout(100) }), undefined);
  const socket = net.connect(stub.port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
});

test("a stop: ignored, or long, or a server that outlives who was stopped, or one that only lives", async (t) => {
  const ignoring = await startReady(t, { ignoresTerm: true });
  const lingering = await startReady(t, { lingerMs: 60_000 });
  const leaking = await startReady(t, { leaks: "server", leakMs: 20_000 });
  const holding = await startReady(t, { leaks: "holder", leakMs: 50, leakMb: 1 });
  const all = [ignoring, lingering, leaking, holding];
  const server = (await leaking.stats()).pid;
  assert.notEqual(server, leaking.process.pid);
  assert.equal(readProcessStat(server)?.parentPid, leaking.process.pid);
  const child = fs.readFileSync(`/proc/${holding.process.pid}/task/${holding.process.pid}/children`, "latin1").trim();
  for (const stub of all) stub.process.kill("SIGTERM");
  assert.deepEqual([await leaking.ended, await holding.ended], [0, 0]);
  // Serving although nobody of what was started is left.
  assert.equal(await statusOf(`${leaking.url}/health`), 200);
  assert.equal(holderOf(new Set(reachedBy(listListeners(), "127.0.0.1", leaking.port).map((at) => at.inode))), server);
  assert.deepEqual([await isReady(ignoring), await isReady(lingering)], [true, true]);
  await leaking.control({ exitCode: 0 });
  await until("the server is gone", isGone(leaking.port));
  await until("the holder ends by itself", () => readProcessStat(Number(child)) === undefined);
});

test("a stream has its events, gap and silence; a client that goes away in a silence is counted at once", async (t) => {
  const stub = await startReady(t);
  const stream = await (await ask(stub.url, { stream: true, stub: { events: 3, eventBytes: 2000, gapMs: 1 } })).text();
  assert.equal(stream.split("data: ").length - 1, 4);
  assert.ok(stream.length > 6000);
  assert.match(stream, /data: \[DONE\]\n\n$/);
  assert.match(await (await ask(stub.url, {})).text(), /"content":"I am red\."/);
  const gone = new AbortController();
  await ask(stub.url, { stream: true, stub: { silenceMs: 60_000 } }, gone.signal);
  gone.abort();
  const { asked, answered, eventsSent } = await until("it counts", async () => {
    const stats = await stub.stats();
    return stats.cancelled === 1 ? stats : undefined;
  });
  assert.deepEqual([asked, answered, eventsSent], [3, 2, 3]);
  assert.equal((await (await fetch(`${stub.url}/bulk?bytes=1000001`)).arrayBuffer()).byteLength, 1_000_001);
});

test("prints at its rate, holds memory, and grows", async (t) => {
  const stub = await startReady(t, { printMbPerS: 20, printMs: 200, holdMb: 50, growMbPerS: 500, growToMb: 100 });
  const residentMb = (): number =>
    Number(/^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${stub.process.pid}/status`, "latin1"))?.[1]) / 1000;
  await until("it has grown", async () => (await stub.stats()).heldMb === 100);
  assert.ok(residentMb() > 100);
  assert.equal((await stub.control({ holdMb: 50 })).heldMb, 150);
  assert.ok(residentMb() > 150);
  await until("it prints", () => stub.output().length >= 100_000);
});

test("listens where it is told, and says why when it cannot", async (t) => {
  const port = await freePort();
  const all = startStub(t, { port, alias: "red", host: "0.0.0.0" });
  const six = startStub(t, { port, alias: "six", host: "::1" });
  await until("both answer", async () => (await isReady(all)) && (await isReady(six)));
  assert.equal((await six.stats()).alias, "six");
  const second = startStub(t, { port, alias: "red", host: "0.0.0.0" });
  assert.equal(await second.ended, 98);
  assert.match(second.output(), /EADDRINUSE/);
});
