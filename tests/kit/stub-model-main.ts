// SPDX-License-Identifier: Apache-2.0
// The program behind stub-model.ts, where its options are told. Rule: it starts nearly as fast as Node does, so it loads node:http
// and nothing else before it listens, and it does only what it was told to.

import type http from "node:http";
import type { StubAnswer, StubModelOptions, StubStats } from "./stub-model.ts";

// An import statement would read every export, of which WebSocket alone loads 30 ms of client.
const { createServer } = process.getBuiltinModule("node:http");

type Options = { -readonly [Name in keyof StubModelOptions]: StubModelOptions[Name] };

const options = readOptions(process.argv.slice(2));
const counts = { connections: 0, asked: 0, answered: 0, cancelled: 0, eventsSent: 0, heldMb: 0 };
const held: Buffer[] = [];
/** By POST /control. */
const released = Promise.withResolvers<void>();
let isReady = false;
let refuseUntil = 0;

/** --load-ms 100 --hangs: numbers where they look like one, true where there is no value. */
function readOptions(args: readonly string[]): Options {
  const read: Record<string, unknown> = {};
  args.forEach((arg, at) => {
    if (!arg.startsWith("--")) return;
    const name = arg.slice(2).replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const value = args[at + 1];
    const isFlag = value === undefined || value.startsWith("--");
    read[name] = isFlag ? true : /^\d+$/.test(value) && !name.endsWith("lias") ? Number(value) : value;
  });
  return read as Options;
}

function stats(): StubStats {
  return { pid: process.pid, alias: options.alias, isReady, ...counts };
}

function send(response: http.ServerResponse, status: number, json?: object): void {
  const text = json === undefined ? "" : JSON.stringify(json);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}

function serve(request: http.IncomingMessage, response: http.ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://stub");
  if (pathname === "/stats") return send(response, 200, stats());
  if (pathname === "/control") return void readJson(request).then((told) => control(told, response));
  if (options.isDeaf === true) return;
  if (pathname === "/health") return send(response, isReady ? 200 : 503, { status: isReady ? "ok" : "loading" });
  if (!isReady) return send(response, 503, { error: { code: 503, message: "Loading model" } });
  if (performance.now() < refuseUntil) return send(response, 400);
  if (pathname === "/v1/models") return send(response, 200, { object: "list", data: [{ id: options.alias }] });
  if (pathname === "/bulk") return void bulk(response, Number(searchParams.get("bytes") ?? 0));
  if (request.method === "POST" && /^\/v1\/(?:chat\/)?completions$/.test(pathname))
    return void readJson(request).then((asked) => answer(asked, response));
  return send(response, 404, { error: { message: `there is no ${pathname}` } });
}

type Json = { readonly [name: string]: unknown };

async function readJson(request: http.IncomingMessage): Promise<Json> {
  let text = "";
  for await (const piece of request) text += String(piece);
  return JSON.parse(text === "" ? "{}" : text) as Json;
}

function control(told: Json, response: http.ServerResponse): void {
  Object.assign(options, told);
  if (typeof told["refuseMs"] === "number") refuseUntil = performance.now() + told["refuseMs"];
  if (told["hangs"] === false) released.resolve();
  if (typeof told["holdMb"] === "number") hold(told["holdMb"]);
  if (typeof told["growMbPerS"] === "number") grow(told["growMbPerS"]);
  send(response, 200, stats());
  if (typeof told["exitCode"] === "number") response.once("finish", () => process.exit(options.exitCode));
}

async function answer(asked: Json, response: http.ServerResponse): Promise<void> {
  counts.asked++;
  const { events = 8, eventBytes = 8, gapMs = 0, silenceMs = 0 } = { ...options, ...(asked["stub"] as StubAnswer) };
  const gone = new Promise<void>((resolve) => response.once("close", resolve));
  response.once("close", () => {
    if (response.writableFinished) counts.answered++;
    else counts.cancelled++;
  });
  const text = `I am ${options.alias}.`;
  const choice = { index: 0, message: { role: "assistant", content: text }, text, finish_reason: "stop" };
  if (asked["stream"] !== true) {
    await pause(silenceMs, gone);
    if (!response.closed) send(response, 200, { object: "chat.completion", model: options.alias, choices: [choice] });
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  await pause(silenceMs, gone);
  const content = "x".repeat(eventBytes);
  const event = `data: ${JSON.stringify({ model: options.alias, choices: [{ index: 0, delta: { content } }] })}\n\n`;
  for (let sent = 0; sent < events && !response.closed; sent++) {
    if (sent > 0) await pause(gapMs, gone);
    if (!response.write(event)) await Promise.race([new Promise((resolve) => response.once("drain", resolve)), gone]);
    counts.eventsSent++;
  }
  response.end("data: [DONE]\n\n");
}

async function pause(ms: number, gone: Promise<void>): Promise<void> {
  if (ms > 0) await Promise.race([new Promise((resolve) => setTimeout(resolve, ms)), gone]);
}

async function bulk(response: http.ServerResponse, bytes: number): Promise<void> {
  response.writeHead(200, { "content-length": bytes });
  const piece = Buffer.alloc(256 * 1024, "x");
  for (let left = bytes; left > 0 && !response.closed; left -= piece.length)
    if (!response.write(piece.subarray(0, left))) await new Promise((resolve) => response.once("drain", resolve));
  response.end();
}

const MB = 1_000_000;

/** Each page is written to: memory that is only reserved is no memory. */
function hold(mb: number): void {
  for (let left = mb * MB; left > 0; left -= 16 * MB) {
    const piece = Buffer.allocUnsafeSlow(Math.min(left, 16 * MB));
    for (let at = 0; at < piece.length; at += 4096) piece[at] = 1;
    held.push(piece);
  }
  counts.heldMb += mb;
}

function grow(mbPerS: number): void {
  const began = performance.now();
  let grown = 0;
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - began) / 1000) * mbPerS);
    const step = Math.min(due - grown, (options.growToMb ?? Number.POSITIVE_INFINITY) - counts.heldMb);
    if (step > 0) hold(step);
    else if (due > grown) clearInterval(timer);
    grown += Math.max(step, 0);
  }, 5);
}

function print(mbPerS: number): void {
  const began = performance.now();
  const line = Buffer.from(`${"x".repeat(999)}\n`.repeat(100));
  let written = 0;
  const more = (): void => {
    const elapsed = performance.now() - began;
    if (elapsed > (options.printMs ?? Number.POSITIVE_INFINITY)) return;
    const due = (elapsed / 1000) * mbPerS * MB;
    for (; written < due; written += line.length) {
      if (process.stdout.write(line)) continue;
      written += line.length;
      return void process.stdout.once("drain", more);
    }
    setTimeout(more, 2);
  };
  more();
}

const SLICE_MS = 8;
const LONG_MS = 2 ** 30;

function compute(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** In slices, so that it answers meanwhile. */
async function load(until: number): Promise<void> {
  const { loadBy = "nothing" } = options;
  const everyMs = { nothing: LONG_MS, output: 20, cpu: 1, file: 1 }[loadBy];
  const fs = loadBy === "file" ? await import("node:fs") : undefined;
  const fd = fs?.openSync(process.execPath, "r");
  const piece = Buffer.alloc(256 * 1024);
  while (options.hangs === true || performance.now() < until) {
    if (loadBy === "output") process.stdout.write(`loading ${performance.now().toFixed(0)}\n`);
    if (loadBy === "cpu") compute(SLICE_MS);
    if (fs !== undefined && fd !== undefined) fs.readSync(fd, piece, { position: 0 });
    const left = options.hangs === true ? LONG_MS : until - performance.now();
    await pause(Math.min(left, everyMs), released.promise);
  }
}

function becomeReady(): void {
  isReady = true;
  refuseUntil = performance.now() + (options.refuseMs ?? 0);
  if (options.growMbPerS !== undefined) grow(options.growMbPerS);
  if (options.exitAfterMs !== undefined) setTimeout(() => process.exit(options.exitCode ?? 1), options.exitAfterMs);
}

function listen(): void {
  const server = createServer(serve);
  server.on("connection", () => counts.connections++);
  server.on("error", (error) => {
    process.stderr.write(`stub: ${error.message}\n`);
    process.exit(98);
  });
  server.listen({ port: Number(options.port), host: options.host ?? "127.0.0.1" }, () =>
    process.stdout.write(`listening ${performance.now().toFixed(0)}\n`),
  );
}

/** The one that is left behind: this program again, which ends itself leakMs after its parent. */
async function leak(): Promise<void> {
  const { spawn } = await import("node:child_process");
  const args = process.argv.slice(2).map((arg) => (arg === "--leaks" ? "--leaked" : arg));
  spawn(process.execPath, [...process.argv.slice(1, 2), ...args, "--parent", String(process.pid)], {
    detached: true,
    stdio: "inherit",
  }).unref();
}

/** The parent is named: it may be gone before this one looks for the first time. */
function outliveParent(parent: unknown): void {
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    setTimeout(() => process.exit(0), options.leakMs ?? 60_000);
  }, 10);
}

async function run({ leaked, parent }: { leaked?: unknown; parent?: unknown }): Promise<void> {
  // Whatever it is told not to do, it is there until something ends it.
  setInterval(() => {}, LONG_MS);
  process.on("SIGTERM", () => {
    if (options.ignoresTerm === true || leaked !== undefined) return;
    if (options.lingerMs === undefined) process.exit(0);
    setTimeout(() => process.exit(0), options.lingerMs);
  });
  process.on("SIGUSR2", () => {
    options.alias = options.nextAlias ?? options.alias;
  });
  if (leaked !== undefined) outliveParent(parent);
  if (options.leaks !== undefined) await leak();
  if (leaked === "holder") return hold(options.leakMb ?? 0);
  if (options.leaks === "server") return;
  if (options.listens === undefined || options.listens === "first") listen();
  if (options.holdMb !== undefined) hold(options.holdMb);
  if (options.printMbPerS !== undefined) print(options.printMbPerS);
  await load(options.loadMs ?? 0);
  if (options.crashCode !== undefined) {
    process.stderr.write("stub: error loading model: it was told to\n");
    process.exit(options.crashCode);
  }
  becomeReady();
  if (options.listens === "ready") listen();
}

await run(options as { leaked?: unknown; parent?: unknown });
