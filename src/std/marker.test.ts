// SPDX-License-Identifier: Apache-2.0
// Markers against a real HTTP server that says this and that.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { defaultMarker, type Place, probeMarker, valuesAt } from "./marker.ts";

async function serve(t: TestContext, answer: http.RequestListener): Promise<Place> {
  const server = http.createServer(answer).listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
}

const models = (...ids: readonly string[]): string => JSON.stringify({ data: ids.map((id) => ({ id })) });

test("a marker is an exact value: no substring, no other type, and any of the ids of a server", async (t) => {
  let said = models("qwen3-8b", "alias");
  const place = await serve(t, (_, response) => response.end(said));
  const probe = (value: unknown) => probeMarker(place, defaultMarker(value), 5000);
  assert.deepEqual(await probe("qwen3-8b"), { kind: "equal" });
  assert.deepEqual(await probe("alias"), { kind: "equal" });
  assert.deepEqual(await probe("qwen3"), { kind: "other", found: ["qwen3-8b", "alias"] });
  said = models("7");
  assert.deepEqual(await probe(7), { kind: "other", found: "7" });
  said = models();
  assert.deepEqual(await probe("qwen3"), { kind: "other", found: undefined });
});

test("no answer, another status, no JSON and too much are no proof, and each says why", async (t) => {
  const place = await serve(t, (request, response) => {
    if (request.url === "/hang") return;
    response.statusCode = request.url === "/busy" ? 503 : 200;
    response.end(request.url === "/text" ? "ok" : request.url === "/big" ? `"${"x".repeat(2_000_000)}"` : "{}");
  });
  const why = async (path: string, at: Place = place) => {
    const probed = await probeMarker(at, { path, pointer: "/id", value: 1 }, path === "/hang" ? 50 : 5000);
    return probed.kind === "silent" ? probed.why : probed.kind;
  };
  assert.equal(await why("/busy"), "status 503");
  assert.equal(await why("/text"), "an answer that is no JSON");
  assert.match(await why("/big"), /more than 1048576 bytes/);
  assert.equal(await why("/hang"), "no answer in 50 ms");
  assert.match(await why("/", { host: "127.0.0.1", port: 1 }), /ECONNREFUSED/);
});

test("a generation must give exactly its text", async (t) => {
  let text = "red";
  const place = await serve(t, (request, response) =>
    response.end(request.method === "POST" ? JSON.stringify({ choices: [{ text }] }) : models("m")),
  );
  const generation = { path: "/v1/completions", body: { prompt: "?" }, pointer: "/choices/0/text", text: "red" };
  const probe = () => probeMarker(place, { ...defaultMarker("m"), generation }, 5000);
  assert.deepEqual(await probe(), { kind: "equal" });
  text = "red ";
  assert.deepEqual(await probe(), { kind: "other", found: "red " });
});

test("pointers follow RFC 6901, and a star stands for each element", () => {
  const json = { "a/b": { "~": [{ id: 1 }, { id: 2 }] }, length: 3 };
  assert.deepEqual(valuesAt(json, ""), [json]);
  assert.deepEqual(valuesAt(json, "/a~1b/~0/*/id"), [1, 2]);
  assert.deepEqual(valuesAt(json, "/a~1b/~0/1/id"), [2]);
  for (const nothing of ["/x", "/a~1b/~0/2", "/toString", "/length/x", "/a~1b/~0/length"])
    assert.deepEqual(valuesAt(json, nothing), []);
});
