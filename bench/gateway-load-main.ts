// SPDX-License-Identifier: Apache-2.0
// The load of bench/gateway.ts, a process of its own: a line of JSON on standard input says what to measure at which port, a line
// on standard output says what came of it. The same process loads every peer, so that all have it equally warm.

import net from "node:net";
import readline from "node:readline";

export type LoadKind = "requests" | "latency" | "stream" | "bulk" | "connections" | "open" | "close";
export type LoadAsked = { readonly kind: LoadKind; readonly port: number; readonly ms: number; readonly count: number };
/** Times are microseconds. */
export type LoadSaid = { readonly done: number; readonly ms: number; readonly p50: number; readonly p99: number };

const ANSWER_BYTES = Buffer.byteLength(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 128\r\n\r\n${"x".repeat(128)}`,
);
const request = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer none\r\nAccept: */*\r\n\r\n`;
const SMALL = Buffer.from(request("/small"));

const dial = (port: number): net.Socket => {
  const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
  socket.on("error", (error) => process.stderr.write(`load: ${error.message}\n`));
  return socket;
};

/** Sends, waits for the answer, sends: until isOver says so. Calls onDone for each answer with its time. */
function ping(socket: net.Socket, isOver: () => boolean, onDone: (us: number) => void): Promise<void> {
  return new Promise((resolve) => {
    let left = ANSWER_BYTES;
    let began = 0n;
    const send = (): void => {
      left = ANSWER_BYTES;
      began = process.hrtime.bigint();
      socket.write(SMALL);
    };
    socket.on("data", (bytes) => {
      left -= bytes.length;
      if (left > 0) return;
      onDone(Number(process.hrtime.bigint() - began) / 1000);
      if (isOver()) resolve();
      else send();
    });
    socket.on("close", () => resolve());
    send();
  });
}

function said(done: number, began: number, times: readonly number[]): LoadSaid {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { done, ms: performance.now() - began, p50: at(0.5), p99: at(0.99) };
}

async function pings({ port, ms, count }: LoadAsked): Promise<LoadSaid> {
  const sockets = Array.from({ length: count }, () => dial(port));
  const times: number[] = [];
  const began = performance.now();
  const isOver = (): boolean => performance.now() - began > ms;
  await Promise.all(sockets.map((socket) => ping(socket, isOver, (us) => times.push(us))));
  const result = said(times.length, began, times);
  for (const socket of sockets) socket.destroy();
  return result;
}

async function streams({ port, ms, count }: LoadAsked): Promise<LoadSaid> {
  const times: number[] = [];
  const began = performance.now();
  const sockets = Array.from({ length: count }, () => {
    const socket = dial(port);
    socket.write(request("/stream"));
    socket.on("data", (bytes) => {
      const now = process.hrtime.bigint();
      for (const [, sent] of bytes.toString("latin1").matchAll(/"sent":(\d+)/g))
        times.push(Number(now - BigInt(sent ?? 0)) / 1000);
    });
    return socket;
  });
  await new Promise((resolve) => setTimeout(resolve, ms));
  for (const socket of sockets) socket.destroy();
  return said(times.length, began, times);
}

async function bulk({ port, ms }: LoadAsked): Promise<LoadSaid> {
  let bytes = 0;
  const buffer = Buffer.alloc(256 * 1024);
  const socket = net.connect({
    port,
    host: "127.0.0.1",
    onread: {
      buffer,
      callback: (count) => {
        bytes += count;
        return true;
      },
    },
  });
  const began = performance.now();
  socket.write(request("/bulk"));
  await new Promise((resolve) => setTimeout(resolve, ms));
  const result = said(bytes, began, []);
  socket.destroy();
  return result;
}

async function connections({ port, ms, count }: LoadAsked): Promise<LoadSaid> {
  const began = performance.now();
  const times: number[] = [];
  const one = async (): Promise<void> => {
    while (performance.now() - began < ms) {
      const start = performance.now();
      const socket = dial(port);
      await ping(
        socket,
        () => true,
        () => {},
      );
      socket.destroy();
      times.push((performance.now() - start) * 1000);
    }
  };
  await Promise.all(Array.from({ length: count }, one));
  return said(times.length, began, times);
}

const opened: net.Socket[] = [];

async function open({ port, count }: LoadAsked): Promise<LoadSaid> {
  const began = performance.now();
  for (let index = 0; index < count; index++) {
    const socket = dial(port);
    opened.push(socket);
    await ping(
      socket,
      () => true,
      () => {},
    );
  }
  return said(count, began, []);
}

function close(): Promise<LoadSaid> {
  for (const socket of opened.splice(0)) socket.destroy();
  return Promise.resolve(said(0, performance.now(), []));
}

const kinds: Readonly<Record<LoadKind, (asked: LoadAsked) => Promise<LoadSaid>>> = {
  requests: pings,
  latency: pings,
  stream: streams,
  bulk,
  connections,
  open,
  close,
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line) as LoadAsked;
  process.stdout.write(`${JSON.stringify(await kinds[asked.kind](asked))}\n`);
}
