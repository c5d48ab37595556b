// SPDX-License-Identifier: Apache-2.0
// Where messages end, for every cut of the bytes into reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Framing } from "./framing.ts";

/** > is what the client says, < what the server answers; true, false: whether it is idle after that. */
type Step = readonly [">" | "<", string] | boolean;

function walk(steps: readonly Step[], size: number): void {
  const framing = new Framing();
  for (const step of steps) {
    if (typeof step === "boolean") {
      assert.equal(framing.isIdle, step, `${JSON.stringify(steps)} in reads of ${size}`);
      continue;
    }
    const bytes = Buffer.from(step[1], "latin1");
    for (let at = 0; at < bytes.length; at += size) {
      const read = Buffer.from(bytes.subarray(at, at + size));
      if (step[0] === ">") framing.seeRequest(read);
      else framing.seeAnswer(read);
      // The buffer is read into again.
      read.fill(0);
    }
  }
}

const ask = (method = "GET", more = ""): Step => [">", `${method} /v1 HTTP/1.1\r\nhost: a\r\n${more}\r\n`];
const OK = "HTTP/1.1 200 OK\r\n";

const cases: Readonly<Record<string, readonly Step[]>> = {
  "a length": [ask(), false, ["<", `${OK}Content-Length: 5\r\n\r\nhel`], false, ["<", "lo"], true],
  "no body": [ask(), ["<", `${OK}content-length:0\r\n\r\n`], true],
  "chunks with extensions and trailers": [
    ask(),
    ["<", `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n5;a=b\r\nhello\r\n`],
    false,
    ["<", "A\r\n0\r\n\r\n0\r\n\r\n\r\n"],
    false,
    ["<", "0\r\nX: y\r\n"],
    false,
    ["<", "\r\n"],
    true,
  ],
  "an event that looks like the last chunk": [
    ask(),
    ["<", `${OK}transfer-encoding: chunked\r\n\r\n5\r\n0\r\n\r\n\r\n`],
    false,
    ["<", "0\r\n\r\n"],
    true,
  ],
  "chunks win over a length": [
    ask(),
    ["<", `${OK}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n`],
    false,
    ["<", "0\r\n\r\n"],
    true,
  ],
  "until the end": [ask(), ["<", `${OK}\r\nabc`], false, ["<", "more"], false],
  "a body that is still sent": [
    ask("POST", "content-length: 4\r\n"),
    ["<", `${OK}content-length: 0\r\n\r\n`],
    false,
    [">", "body"],
    true,
  ],
  "HEAD, 204 and 304 have no body": [
    ask("HEAD"),
    ["<", `${OK}content-length: 9\r\n\r\n`],
    true,
    ask(),
    ["<", "HTTP/1.1 204 No\r\ncontent-length: 9\r\n\r\n"],
    true,
    ask(),
    ["<", "HTTP/1.1 304 Same\r\n\r\n"],
    true,
  ],
  "an interim answer is none": [
    ask("POST", "expect: 100-continue\r\ncontent-length: 2\r\n"),
    ["<", "HTTP/1.1 100 Continue\r\n\r\n"],
    false,
    [">", "ab"],
    false,
    ["<", `${OK}content-length: 0\r\n\r\n`],
    true,
  ],
  "requests behind one another": [
    ask(),
    ask(),
    ["<", `${OK}content-length: 1\r\n\r\na`],
    false,
    ["<", `${OK}content-length: 1\r\n\r\nb`],
    true,
  ],
  "another protocol after an upgrade": [
    ask("GET", "upgrade: websocket\r\n"),
    ["<", "HTTP/1.1 101 Switching\r\n\r\n"],
    false,
    ["<", "x"],
    false,
  ],
  "a tunnel": [ask("CONNECT"), ["<", `${OK}\r\n`], false],
  TLS: [[">", "\u0016\u0003\u0001\u0002"], false, ["<", "\u0016\u0003\u0003"], false],
  "HTTP/2": [[">", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], false],
  "an answer without a question": [["<", `${OK}content-length: 0\r\n\r\n`], false],
  "a broken chunk": [ask(), ["<", `${OK}transfer-encoding: chunked\r\n\r\nxyz\r\n0\r\n\r\n`], false],
  "a head without end": [[">", `GET / HTTP/1.1\r\nx: ${"y".repeat(70_000)}`], false, [">", "\r\n\r\n"], false],
};

for (const [name, steps] of Object.entries(cases))
  test(`idle or busy: ${name}`, () => {
    for (const size of [1, 2, 3, 5, 7, 64, 65_536]) walk(steps, size);
  });
