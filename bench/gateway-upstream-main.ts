// SPDX-License-Identifier: Apache-2.0
// The upstream of bench/gateway.ts, a process of its own: answers as fast as it can, on raw sockets, what the path of a request
// asks for: /small, /stream (events that carry the time at which they were sent) or /bulk (bytes without end).

import net from "node:net";

const EVENTS_PER_SECOND = 100;
const small = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 128\r\n\r\n${"x".repeat(128)}`,
);
const bulkHead = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n";
const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const block = Buffer.alloc(256 * 1024, "bulk");

function stream(socket: net.Socket): void {
  socket.write(streamHead);
  const timer = setInterval(() => {
    const event = `data: {"sent":${process.hrtime.bigint()},"choices":[{"delta":{"content":" token"}}]}\n\n`;
    socket.write(`${event.length.toString(16)}\r\n${event}\r\n`);
  }, 1000 / EVENTS_PER_SECOND);
  socket.on("close", () => clearInterval(timer));
}

function bulk(socket: net.Socket): void {
  socket.write(bulkHead);
  const more = (): void => {
    while (!socket.destroyed && socket.write(block));
  };
  socket.on("drain", more);
  more();
}

const server = net.createServer({ noDelay: true }, (socket) => {
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    // The letters after "GET /".
    const path = bytes.toString("latin1", 5, 7);
    if (path === "sm") socket.write(small);
    else if (path === "st") stream(socket);
    else bulk(socket);
  });
});
server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () => {
  process.stdout.write(`${(server.address() as net.AddressInfo).port}\n`);
});
