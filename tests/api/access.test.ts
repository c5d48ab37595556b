// SPDX-License-Identifier: Apache-2.0
// Who reaches what (P5, P12): each route refuses what is not its own, an organisation never sees another, and row-level
// security holds even where a query forgets its filter.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../../src/client/client.ts";
import { drawSecret, hashSecret } from "../../src/controller/access/credential.ts";
import { findCaller, listTokens } from "../../src/controller/access/credential-store.ts";
import { listAudit } from "../../src/controller/audit/audit-store.ts";
import { countJobs } from "../../src/controller/jobs/count-store.ts";
import { findJob, findJobDetail, listEvents, listJobs } from "../../src/controller/jobs/job-store.ts";
import { readLog } from "../../src/controller/jobs/log-store.ts";
import { listHolds } from "../../src/controller/jobs/hold-store.ts";
import { explainJob } from "../../src/controller/jobs/why-store.ts";
import { findCandidate, listCandidates } from "../../src/controller/nodes/candidate-store.ts";
import { findNode, listNodes } from "../../src/controller/nodes/node-store.ts";
import type { Route } from "../../src/protocol/route.ts";
import { routes } from "../../src/protocol/routes.ts";
import type { OrganisationId } from "../../src/std/ids.ts";
import { systemRandom } from "../../src/std/random.ts";
import { newNodeKey, pairWith } from "../kit/node-double.ts";
import { createWorld, type World } from "../kit/world.ts";
import { secondOrganisation } from "./kit.ts";

const table = Object.entries(routes) as [string, Route][];
const ID = "0".repeat(26);
const prefixes: Readonly<Record<string, string>> = { credential: "cred", project: "proj" };
const someAddress = (route: Route): string =>
  route.path.replace(/:(\w+)Id/g, (_, noun: string) => `${prefixes[noun] ?? noun}_${ID}`);

async function send(world: World, route: Route, credential: string | undefined, body: unknown = {}) {
  const response = await fetch(world.url + someAddress(route), {
    method: route.method,
    headers: {
      "content-type": "application/json",
      ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
    },
    ...(route.method === "POST" ? { body: JSON.stringify(body) } : {}),
  });
  return {
    status: response.status,
    body: (await response.json()) as { code?: string; details?: { place: string }[]; requestId?: string },
  };
}

const somePairing = { publicKey: "a".repeat(43), credentialHash: "a".repeat(43), signature: "a".repeat(86) };

test("every route but the open ones refuses a caller without a credential, with a wrong one and with a revoked one", async (t) => {
  const world = await createWorld(t);
  const { secret, id } = await world.admin.call("tokenCreate", {
    body: { name: "gone", scopes: ["fleet:read", "fleet:write", "fleet:admin"] },
  });
  await world.admin.call("tokenRevoke", { params: { credentialId: id } });
  for (const [name, route] of table) {
    if (route.access.kind === "public" || route.access.kind === "sign-in") continue;
    for (const credential of [
      undefined,
      "hft_short",
      drawSecret("token", systemRandom),
      drawSecret("node", systemRandom),
      secret,
    ]) {
      const { status, body } = await send(world, route, credential, name === "nodePair" ? somePairing : {});
      assert.equal(status, 401, `${name} with ${credential}`);
      assert.ok(body.code === "unauthenticated" || body.code === "pairing_code_unknown", name);
      assert.ok(body.requestId !== undefined);
    }
  }
});

test("P5: a node's credential reaches node routes only, a person's token people routes only, each by its scopes", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const { secret: reader } = await world.admin.call("tokenCreate", {
    body: { name: "reader", scopes: ["fleet:read"] },
  });
  for (const [name, route] of table) {
    if (route.access.kind === "people") {
      assert.equal((await send(world, route, node.credential)).status, 403, name);
      if (route.access.scope !== "fleet:read") assert.equal((await send(world, route, reader)).status, 403, name);
    }
    if (route.access.kind === "node" || route.access.kind === "enrolling")
      assert.equal((await send(world, route, world.token)).status, 403, name);
  }
});

test("a body or query with a field that nobody knows is refused by its place, an organisation above all", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  let checked = 0;
  for (const [name, route] of table) {
    if (route.access.kind === "pairing" || route.access.kind === "public") continue;
    const isNodes = route.access.kind === "node" || route.access.kind === "enrolling";
    const credential = isNodes ? node.credential : world.token;
    const inQuery = { ...route, path: `${route.path}?organisationId=org_${ID}` };
    const query = await send(world, inQuery, credential);
    assert.equal(query.status, 400, `${name}: query`);
    assert.ok(
      query.body.details?.some((fault) => fault.place === "query/organisationId"),
      name,
    );
    if (route.method === "POST") {
      const { status, body } = await send(world, route, credential, { organisationId: `org_${ID}`, surprise: 1 });
      assert.equal(status, 400, name);
      const places = body.details?.map((fault) => fault.place) ?? [];
      assert.ok(places.includes("/organisationId") && places.includes("/surprise"), `${name}: ${places.join(" ")}`);
    }
    checked++;
  }
  assert.ok(checked >= 25);
});

test("all faults of a request are told at once, each with its place and none as a 5xx", async (t) => {
  const world = await createWorld(t);
  const raw = async (body: string, type = "application/json") => {
    const response = await fetch(`${world.url}/v1/jobs`, {
      method: "POST",
      headers: { authorization: `Bearer ${world.token}`, "content-type": type },
      body,
    });
    return {
      status: response.status,
      body: (await response.json()) as { code: string; details?: { place: string; problem: string }[] },
    };
  };
  const many = await raw(
    JSON.stringify({
      command: [],
      priority: "7",
      retry: { maxAttempts: 99 },
      environment: { HOLDFAST_X: "1" },
      notBefore: "soon",
    }),
  );
  assert.equal(many.status, 400);
  const places = many.body.details?.map((fault) => fault.place) ?? [];
  for (const place of [
    "/command",
    "/priority",
    "/retry/maxAttempts",
    "/retry/onFailure",
    "/environment/HOLDFAST_X",
    "/notBefore",
  ]) {
    assert.ok(places.includes(place), `${place} in ${places.join(" ")}`);
  }
  const big = await raw('{"command":["x"],"input":{"id":1970670598291982290}}');
  assert.deepEqual([big.status, big.body.details?.[0]?.place], [400, "/input/id"]);
  assert.deepEqual(
    (await raw('{"command":["a\\u0000"],"input":"\\ud800"}')).body.details?.map((fault) => fault.place),
    ["/command/0", "/input"],
  );
  assert.equal((await raw('{"command":["x"],"input":1e400}')).status, 400);
  assert.equal((await raw("{")).body.code, "invalid_request");
  assert.equal((await raw("")).body.code, "invalid_request");
  assert.equal((await raw("null")).status, 400);
  assert.equal((await raw("x", "text/plain")).status, 415);
  assert.equal(
    (await raw(JSON.stringify({ command: ["x"], input: "x".repeat(300_000) }))).body.details?.[0]?.place,
    "/input",
  );
  assert.equal((await raw(JSON.stringify({ command: ["x"], input: "x".repeat(2_000_000) }))).status, 413);
  assert.equal((await raw(`{"command":["x"],"input":${"[".repeat(5000)}${"]".repeat(5000)}}`)).status, 400);
  const nowhere = await fetch(`${world.url}/v1/nothing`);
  assert.deepEqual([nowhere.status, ((await nowhere.json()) as { code: string }).code], [404, "not_found"]);
});

test("two organisations never see each other, with a token, with a node and in the stores", async (t) => {
  const world = await createWorld(t);
  const mine = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await world.node("anna");
  const { client: stranger, node: foreign } = await secondOrganisation(world);
  assert.deepEqual((await stranger.call("jobList", {})).items, []);
  assert.deepEqual(
    (await stranger.call("nodeList", {})).items.map(({ id }) => id),
    [foreign.nodeId],
  );
  await assert.rejects(stranger.call("jobShow", { params: { jobId: mine.id } }), { code: "not_found" });
  await assert.rejects(stranger.call("jobCancel", { params: { jobId: mine.id } }), { code: "not_found" });
  assert.deepEqual(await foreign.claim(5), []);
  assert.equal(await foreign.start(mine.id, "1"), "unknown");
  assert.equal(await foreign.end(mine.id, "1"), "unknown");
});

test("P5: with no organisation set every store function sees nothing, and a query without a filter cannot cross", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("anna");
  const job = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(job.id, lease.epoch);
  await node.log(job.id, lease.epoch, { offset: 0, text: "x" });
  await secondOrganisation(world);
  const nobody = { organisationId: "", scopes: [] };
  await world.db.tenant(nobody, async (tx) => {
    assert.deepEqual(await listNodes(tx, 5000), []);
    assert.equal(await findNode(tx, 5000, node.nodeId), undefined);
    assert.equal((await listCandidates(tx, 5000)).size, 0);
    assert.equal(await findCandidate(tx, 5000, node.nodeId), undefined);
    assert.deepEqual(await listHolds(tx, [node.nodeId]), []);
    assert.equal(
      await explainJob(tx, { organisationId: "" as OrganisationId, jobId: job.id, heartbeatMs: 5000 }),
      undefined,
    );
    assert.equal(await findJob(tx, job.id), undefined);
    assert.equal(await findJobDetail(tx, job.id), undefined);
    assert.deepEqual((await listJobs(tx, {})).items, []);
    assert.equal((await countJobs(tx)).running, 0);
    assert.deepEqual(await listEvents(tx, job.id, 0, 10), []);
    assert.equal(await readLog(tx, job.id, undefined), undefined);
    assert.deepEqual(await listTokens(tx), []);
    assert.deepEqual((await listAudit(tx, {})).items, []);
    assert.equal(await findCaller(tx, hashSecret(world.token)), undefined);
  });
  // Every table with an organisation has its security forced, and none shows another's row to a query without a filter.
  const tables = await world.sql<{ name: string; forced: boolean }>(
    `select c.relname as name, c.relrowsecurity and c.relforcerowsecurity as forced from pg_class c
       join pg_attribute a on a.attrelid = c.oid and a.attname = 'organisation_id' where c.relkind = 'r' and c.relnamespace = 'app'::regnamespace`,
  );
  assert.ok(tables.length >= 14);
  const [organisation] = await world.sql<{ id: string }>("select id from app.organisation where name = 'default'");
  for (const { name, forced } of tables) {
    assert.ok(forced, `${name} has no forced row-level security`);
    const { rows } = await world.db.tenant({ organisationId: organisation?.id ?? "", scopes: [] }, (tx) =>
      tx.query<{ organisation_id: string }>(`select distinct organisation_id from app."${name}"`, []),
    );
    assert.ok(
      rows.every((row) => row.organisation_id === organisation?.id),
      name,
    );
  }
});

test("P5: the service role reads no body, no log and no environment", async (t) => {
  const world = await createWorld(t);
  for (const table of ["job_body", "job_log", "idempotency", "audit"]) {
    await assert.rejects(
      world.db.service((tx) => tx.query(`select * from app.${table}`, [])),
      { code: "42501" },
      table,
    );
  }
});

test("the ledger and the audit are append-only for whoever serves requests", async (t) => {
  const world = await createWorld(t);
  for (const table of ["job_event", "audit", "job_log"]) {
    for (const statement of [`update app.${table} set organisation_id = organisation_id`, `delete from app.${table}`]) {
      await assert.rejects(
        world.db.tenant({ organisationId: "org_x", scopes: [] }, (tx) => tx.query(statement, [])),
        { code: "42501" },
        statement,
      );
    }
  }
});

test("a scope that its maker lacks cannot be given, and without fleet:admin the database itself refuses a token", async (t) => {
  const world = await createWorld(t);
  const half = await world.people("fleet:admin");
  await assert.rejects(half.call("tokenCreate", { body: { name: "x", scopes: ["fleet:write"] } }), {
    code: "forbidden",
  });
  const { organisationId, userId } = await world.admin.call("whoami", {});
  const insert = `insert into app.credential (organisation_id, id, kind, name, user_id, hash, scopes) values ($1, $2, 'token', 'y', $3, $4, '{fleet:read}')`;
  const params = [organisationId, world.ids("cred"), userId, hashSecret("z")];
  await assert.rejects(
    world.db.tenant({ organisationId, scopes: ["fleet:write"] }, (tx) => tx.query(insert, params)),
    { code: "42501" },
  );
  await world.db.tenant({ organisationId, scopes: ["fleet:admin"] }, (tx) => tx.query(insert, params));
});

test("P12: no secret is in the database in clear, and what changed authority is in the audit", async (t) => {
  const world = await createWorld(t);
  const { code } = await world.admin.call("pairingCreate", { body: { name: "anna" } });
  const key = newNodeKey();
  await pairWith(world.url, code, key);
  const { secret } = await world.admin.call("tokenCreate", { body: { name: "bot", scopes: ["fleet:read"] } });
  const dump = JSON.stringify(
    await world.sql(`select (select json_agg(c) from app.credential c) as c, (select json_agg(p) from app.pairing_code p) as p,
                            (select json_agg(a) from app.audit a) as a, (select json_agg(n) from app.node n) as n`),
  );
  for (const clear of [code, key.credential, secret, world.token])
    assert.ok(!dump.includes(clear) && !dump.includes(clear.slice(4)));
  const { items } = await world.admin.call("auditList", {});
  assert.deepEqual(
    items.map((entry) => entry.action),
    ["token.create", "node.enrol", "node.pair", "token.create", "organisation.create"],
  );
});

test("P5: a token that is revoked ends its live tail, and what came later is not told", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const [lease] = await node.claim(1);
  assert.ok(lease !== undefined);
  await node.start(id, lease.epoch);
  const made = await world.admin.call("tokenCreate", { body: { name: "reader", scopes: ["fleet:read"] } });
  const tail = createClient({ baseUrl: world.url, credential: made.secret }).stream("jobLogTail", {
    params: { jobId: id },
  });
  await tail.next();
  await world.admin.call("tokenRevoke", { params: { credentialId: made.id } });
  await node.log(id, lease.epoch, { offset: 0, text: "later" });
  await assert.rejects(tail.next(), { code: "controller_unreachable" });
});

test("P5: whoever serves requests cannot widen a credential or bring a revoked one back", async (t) => {
  const world = await createWorld(t);
  const { organisationId } = await world.admin.call("whoami", {});
  for (const change of ["scopes = '{fleet:admin}'", "hash = sha256('x')", "expires_at = null", "user_id = null"]) {
    const update = world.db.tenant({ organisationId, scopes: [] }, (tx) =>
      tx.query(`update app.credential set ${change}`, []),
    );
    await assert.rejects(update, { code: "42501" }, change);
  }
});
