// SPDX-License-Identifier: Apache-2.0
// Addresses, methods and bodies that make no sense; fuzz.test.ts puts junk into every field of every route.

import assert from "node:assert/strict";
import { test } from "node:test";
import { newNodeKey, pairWith } from "../kit/node-double.ts";
import { createWorld } from "../kit/world.ts";

const ID = "0".repeat(26);

test("addresses, methods and bodies that make no sense are answered with words", async (t) => {
  const world = await createWorld(t);
  const send = async (path: string, init: RequestInit = {}): Promise<number> => {
    const headers = { authorization: `Bearer ${world.token}`, "content-type": "application/json" };
    const response = await fetch(world.url + path, { headers, ...init });
    await response.text();
    return response.status;
  };
  for (const path of [
    "/v1/jobs/%00",
    "/v1/jobs/%ZZ",
    `/v1/jobs/${"x".repeat(3000)}`,
    "/v1/jobs/..%2f..",
    "//",
    "/v1/jobs?limit=1&limit=2",
    "/v1/jobs/job_0/logs/tail",
  ]) {
    const status = await send(path);
    assert.ok(status >= 400 && status < 500, `${path}: ${status}`);
  }
  for (const method of ["PUT", "DELETE", "PATCH", "OPTIONS"]) {
    assert.equal(await send("/v1/jobs", { method, headers: { authorization: `Bearer ${world.token}` } }), 404, method);
  }
  for (const body of ["true", "[]", '"x"', "7", "null"]) {
    const status = await send(`/v1/nodes/node_${ID}/drain`, { method: "POST", body });
    assert.equal(status, body === "null" ? 404 : 400, body);
  }
  assert.equal(await send("/v1/jobs", { method: "POST", body: '{"command":["x"],"__proto__":{"priority":1}}' }), 400);
});

test("a credential that is in use already is a conflict for another machine, not a fault of the controller", async (t) => {
  const world = await createWorld(t);
  const key = newNodeKey();
  const first = await world.admin.call("pairingCreate", { body: { name: "anna" } });
  await pairWith(world.url, first.code, key);
  const second = await world.admin.call("pairingCreate", { body: { name: "berta" } });
  await assert.rejects(pairWith(world.url, second.code, key), { code: "conflict" });
});
