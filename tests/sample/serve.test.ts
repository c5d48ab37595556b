// SPDX-License-Identifier: Apache-2.0
// `holdfast sample` as a scene starts it: written, served, asked, left in the middle, stopped.

import assert from "node:assert/strict";
import http from "node:http";
import type net from "node:net";
import path from "node:path";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { createHome, type Home, type Running } from "../kit/command.ts";
import { until } from "../kit/until.ts";

type Served = { readonly home: Home; readonly running: Running; readonly url: string };

async function serve(t: TestContext, name: string, ...options: readonly string[]): Promise<Served> {
  const home = createHome(t);
  const file = path.join(home.directory, `${name}.gguf`);
  const { code, stdout } = await home.run(["sample", "write", name, "--out", file, ...options]);
  assert.equal(code, 0);
  assert.match(stdout, new RegExp(`iB; it answers "I am ${name}, `));
  const running = home.start(["sample", "serve", "--model", file, "--port", "0", "--context", "65536"]);
  const url = await until("it listens", () => /http:\S+/.exec(running.stderr())?.[0]);
  return { home, running, url };
}

const isReady = (url: string) => async () => (await fetch(`${url}/health`)).status === 200;
const post = (url: string, body: object, signal?: AbortSignal) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ messages: [{ role: "user", content: "Who are you?" }], ...body }),
    ...(signal === undefined ? {} : { signal }),
  });

test("a sample is written and served: health, its id, a whole answer, a stream, refusals, and SIGTERM ends it with 0", async (t) => {
  const { url, running } = await serve(t, "red");
  await until("it is ready", isReady(url));
  const models = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  assert.deepEqual(
    models.data.map((model) => model.id),
    ["red"],
  );
  const sentence = "I am red, a sample model of Holdfast.";
  const whole = (await (await post(url, {})).json()) as { choices: { message: { content: string } }[] };
  assert.equal(whole.choices[0]?.message.content, sentence);
  const stream = await post(url, { stream: true });
  assert.equal(stream.headers.get("content-type"), "text/event-stream");
  const events = (await stream.text()).trim().split("\n\n");
  assert.equal(events.pop(), "data: [DONE]");
  const pieces = events.map((text) => {
    const { choices } = JSON.parse(text.slice("data: ".length)) as { choices: { delta: { content?: string } }[] };
    return choices[0]?.delta.content ?? "";
  });
  assert.equal(pieces.join(""), sentence);
  const statusOf = async (where: string, init: RequestInit = {}) => (await fetch(`${url}${where}`, init)).status;
  assert.equal(await statusOf("/v1/nothing"), 404);
  assert.equal(await statusOf("/v1/completions"), 405);
  assert.equal(await statusOf("/v1/completions", { method: "POST", body: "{}" }), 400);
  assert.equal(await statusOf("/v1/completions", { method: "POST", body: "x".repeat(2 ** 20 + 1) }), 413);
  running.process.kill("SIGTERM");
  assert.equal(await running.ended, 0);
});

test("a client that goes away frees the server for the next, and SIGTERM in the middle of an answer ends it with 0", async (t) => {
  const { url, running } = await serve(t, "red", "--endless");
  await until("it is ready", isReady(url));
  const gone = new AbortController();
  const left = await post(url, { stream: true }, gone.signal);
  await left.body?.getReader().read();
  // The whole of the first answer would take longer than this.
  const waits = post(url, { max_tokens: 1 }, AbortSignal.timeout(10_000));
  gone.abort();
  assert.equal((await waits).status, 200);
  const open = await post(url, { stream: true });
  await open.body?.getReader().read();
  running.process.kill("SIGTERM");
  assert.equal(await running.ended, 0);
});

test("more requests than wait in its queue are told to come again, and those that went away make room", async (t) => {
  const { url } = await serve(t, "red", "--endless");
  await until("it is ready", isReady(url));
  const gone = new AbortController();
  const first = await post(url, { stream: true }, gone.signal);
  await first.body?.getReader().read();
  const waiting = Array.from({ length: 64 }, () => post(url, {}, gone.signal).catch(() => undefined));
  const refused = await Promise.race(waiting);
  assert.deepEqual([refused?.status, refused?.headers.get("retry-after")], [429, "1"]);
  gone.abort();
  await Promise.all(waiting);
  await until("there is room", async () => (await post(url, { max_tokens: 1 })).status === 200);
});

test("while it loads it says 503, and SIGTERM ends it with 0", async (t) => {
  const { url, running } = await serve(t, "big", "--pad", "1GiB");
  // Memory of a gigabyte takes longer than a question.
  assert.deepEqual([(await fetch(`${url}/health`)).status, (await post(url, {})).status], [503, 503]);
  running.process.kill("SIGTERM");
  assert.equal(await running.ended, 0);
});

test("a port that is taken, an address that is not ours, a file that is no model: one line and an exit code each", async (t) => {
  const home = createHome(t);
  const taken = http.createServer().listen(0, "127.0.0.1");
  t.after(() => taken.close());
  await once(taken, "listening");
  const { port } = taken.address() as net.AddressInfo;
  const serving = (...options: readonly string[]) => home.run(["sample", "serve", "--model", "/nowhere", ...options]);
  const faults = [
    { ran: await serving("--port", String(port)), code: 81, says: `127.0.0.1:${port} is taken` },
    { ran: await serving("--host", "192.0.2.1"), code: 82, says: "192.0.2.1" },
    { ran: await serving("--port", "0"), code: 121, says: "/nowhere cannot be served" },
    { ran: await home.run(["sample", "write", "two words", "--out", "x"]), code: 64, says: "letters" },
  ];
  for (const { ran, code, says } of faults) {
    assert.equal(ran.code, code);
    assert.ok(ran.stderr.includes(`holdfast: `) && ran.stderr.includes(says), ran.stderr);
  }
});
