// SPDX-License-Identifier: Apache-2.0
// Whatever a client sends is its own fault and told as such: every route, with junk in every field, never a 5xx.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Route } from "../../src/protocol/route.ts";
import { routes } from "../../src/protocol/routes.ts";
import { newNodeKey, type NodeDouble, pairWith } from "../kit/node-double.ts";
import { createWorld, type World } from "../kit/world.ts";

const table = Object.entries(routes) as [string, Route][];
const ID = "0".repeat(26);

const junk: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2 ** 53,
  1e300,
  "",
  "x",
  "a\0b",
  "\ud800",
  "👍",
  "9".repeat(19),
  "1".repeat(18),
  "2024-13-45T99:99:99Z",
  "0000-01-01T00:00:00Z",
  "2023-02-30T00:00:00Z",
  "2024-01-01T00:00:00+99:99",
  `job_${ID}`,
  `node_${ID}`,
  `nses_${ID}`,
  [],
  [[]],
  [null],
  {},
  { a: 1 },
  { constructor: 1 },
  "x".repeat(70_000),
  "A".repeat(87_384),
  "A".repeat(43),
  "A".repeat(86),
  "../../etc/passwd",
  "' or 1=1 --",
  "%00",
];

/** The fields that a body may have, one level of lists and objects below included. */
function fieldsOf(schema: unknown): string[] {
  const properties = (schema as { properties?: Record<string, unknown> } | undefined)?.properties ?? {};
  return Object.keys(properties);
}

/** A body of every route, correct in each field, by the names of its fields. */
async function goodFields(world: World, node: NodeDouble): Promise<Record<string, unknown>> {
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const [lease] = await node.claim(1);
  return {
    sessionId: node.sessionId,
    facts: node.facts,
    now: new Date().toISOString(),
    holds: [],
    number: 2,
    max: 1,
    waitMs: 0,
    starts: [{ jobId: id, epoch: lease?.epoch }],
    leases: [{ jobId: id, epoch: lease?.epoch }],
    command: ["true"],
    name: "n",
    scopes: ["fleet:read"],
    jobId: id,
    epoch: lease?.epoch,
    stream: "stdout",
    offset: 0,
    data: "AAAA",
    publicKey: "A".repeat(43),
    credentialHash: "A".repeat(43),
    signature: "A".repeat(86),
    ending: {
      jobId: id,
      epoch: lease?.epoch,
      outcome: { kind: "exited", exitCode: 0 },
      stopped: null,
      startedAt: null,
      endedAt: null,
      message: null,
    },
  };
}

test("junk in every field of every route is a 4xx or an answer, never a 5xx", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const good = await goodFields(world, node);
  let sent = 0;
  const seen = new Map<number, number>();
  for (const [name, route] of table) {
    if (route.stream === true) continue;
    const credential = route.access.kind === "node" ? node.credential : world.token;
    const address =
      world.url +
      route.path.replace(":jobId", `job_${ID}`).replace(":nodeId", `node_${ID}`).replace(":credentialId", `cred_${ID}`);
    const call = async (query: string, body: unknown): Promise<void> => {
      const response = await fetch(address + query, {
        method: route.method,
        headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
        ...(route.method === "POST" ? { body: JSON.stringify(body) } : {}),
      });
      const text = await response.text();
      sent++;
      seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
      assert.ok(
        response.status < 500,
        `${name} ${query} ${JSON.stringify(body).slice(0, 200)}: ${response.status} ${text}`,
      );
    };
    const fields = fieldsOf(route.body);
    const base = Object.fromEntries(fields.filter((field) => field in good).map((field) => [field, good[field]]));
    for (const value of junk) {
      if (route.method === "POST") await call("", value);
      for (const field of fields) await call("", { ...base, [field]: value });
      for (const field of fieldsOf(route.query))
        await call(
          `?${field}=${encodeURIComponent(typeof value === "string" ? value.toWellFormed() : JSON.stringify(value))}`,
          {},
        );
    }
    for (const time of ["startedAt", "endedAt"])
      await call("", { ...base, ending: { ...(good["ending"] as object), [time]: "2024-02-30T00:00:00Z" } });
  }
  assert.ok(sent > 1500, `${sent} requests`);
  t.diagnostic(`${sent} requests: ${JSON.stringify(Object.fromEntries(seen))}`);
  assert.equal((await world.admin.call("health", {})).status, "ok");
});

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
