// SPDX-License-Identifier: Apache-2.0
// A stand-in for a model server that tests of the gateway start as a process of its own: `http-stub-main.ts MARKER [PORT [BACKLOG]]`.
// It says its port on standard output. What it saw of aborts it tells at /counters, on a connection that bypasses the gateway.

import { createHash } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { patternOf } from "./pattern.ts";

const [firstMarker = "stub", wantedPort = "0", backlog = "2048"] = process.argv.slice(2);
let marker = firstMarker;
/** Status that /v1/models answers with; 0: never. */
let status = 200;
const counters = { requests: 0, connections: 0, aborts: 0, resets: 0, lastAbortMs: 0 };

type Answer = (response: http.ServerResponse, query: URLSearchParams, request: http.IncomingMessage) => void;

const number = (query: URLSearchParams, name: string, otherwise: number): number =>
  Number(query.get(name) ?? otherwise);

const answers: Readonly<Record<string, Answer>> = {
  "/v1/models": (response) => {
    if (status === 0) return;
    response.statusCode = status;
    response.end(JSON.stringify({ object: "list", data: [{ id: marker }] }));
  },
  "/who": (response) => response.end(marker),
  "/counters": (response) => response.end(JSON.stringify(counters)),
  "/set": (response, query) => {
    marker = query.get("marker") ?? marker;
    status = number(query, "status", status);
    response.end();
  },
  "/slow": (response, query) => void setTimeout(() => response.end(marker), number(query, "ms", 100)),
  "/stream": (response, query) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const count = number(query, "count", Number.POSITIVE_INFINITY);
    let sent = 0;
    const next = (): void => {
      response.write(`data: ${marker} ${sent++} ${performance.timeOrigin + performance.now()}\n\n`);
      if (sent < count) return;
      clearInterval(timer);
      response.end("data: [DONE]\n\n");
    };
    const timer = setInterval(next, number(query, "everyMs", 10));
    response.on("close", () => clearInterval(timer));
    next();
  },
  "/bulk": (response, query) => {
    const pieces = patternOf(number(query, "bytes", 1_000_000));
    const more = (): void => {
      for (let next = pieces.next(); ; next = pieces.next()) {
        if (next.done === true) return void response.end();
        if (!response.write(next.value)) return void response.once("drain", more);
      }
    };
    more();
  },
  "/sum": (response, _, request) => {
    const hash = createHash("sha256");
    request.on("data", (piece: Buffer) => hash.update(piece));
    request.on("end", () => response.end(hash.digest("hex")));
  },
};

const server = http.createServer((request, response) => {
  const url = new URL(request.url ?? "/", "http://stub");
  counters.requests++;
  response.on("close", () => {
    if (response.writableFinished) return;
    counters.aborts++;
    counters.lastAbortMs = performance.timeOrigin + performance.now();
  });
  const answer = answers[url.pathname];
  if (answer !== undefined) return answer(response, url.searchParams, request);
  response.statusCode = 404;
  response.end();
});
server.keepAliveTimeout = 0;
server.on("connection", (socket) => {
  counters.connections++;
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ECONNRESET") counters.resets++;
  });
});
server.listen({ port: Number(wantedPort), host: "127.0.0.1", backlog: Number(backlog) }, () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
