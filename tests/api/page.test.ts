// SPDX-License-Identifier: Apache-2.0
// How the page is served: files with their caching and a policy that lets nothing else in, every other address of a person
// the page itself, and the API untouched by it.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { cleanupOf } from "../kit/cleanup.ts";
import { createWorld } from "../kit/world.ts";

const HTML = { accept: "text/html,application/xhtml+xml" };

test("a person's address gets the page, a file its file, the API its JSON, and nothing gets out of the directory", async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "page-"));
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true }));
  fs.mkdirSync(path.join(directory, "assets"));
  fs.writeFileSync(path.join(directory, "index.html"), "<!doctype html><title>page</title>");
  fs.writeFileSync(path.join(directory, "assets", "main-abc.js"), "1");
  const world = await createWorld(t, {}, { pageDirectory: directory });
  const get = (place: string, headers: Record<string, string> = HTML) => fetch(world.url + place, { headers });
  for (const place of ["/", "/jobs/job_x", "/sign-in", "/nodes?x=1"]) {
    const response = await get(place);
    assert.deepEqual([response.status, await response.text()], [200, "<!doctype html><title>page</title>"], place);
    assert.match(response.headers.get("content-security-policy") ?? "", /^default-src 'none'; script-src 'self'/);
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.equal(response.headers.get("cache-control"), "no-cache");
  }
  const asset = await get("/assets/main-abc.js", {});
  assert.match(asset.headers.get("cache-control") ?? "", /immutable/);
  assert.match(asset.headers.get("content-type") ?? "", /javascript/);
  for (const place of ["/v1/nothing", "/assets/gone.js", "/metrics/x"]) {
    const response = await get(place);
    assert.equal(response.status, 404, place);
    assert.equal(((await response.json()) as { code: string }).code, "not_found");
  }
  assert.equal((await get("/jobs", { accept: "application/json" })).status, 404);
  for (const place of ["/..%2f..%2fetc%2fpasswd", "/assets/..%2f..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd"])
    assert.doesNotMatch(await (await get(place)).text(), /root:/);
});

test("where the page is not built, a person is told how to build it and the API serves", async (t) => {
  const world = await createWorld(t);
  const response = await fetch(`${world.url}/`, { headers: HTML });
  assert.equal(response.status, 503);
  assert.match(await response.text(), /npm run web/);
  assert.equal((await fetch(`${world.url}/v1/health`)).status, 200);
});
