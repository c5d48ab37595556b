// SPDX-License-Identifier: Apache-2.0
// A fuzz generated from the route table: every place of every body, query and address, with what a hostile or broken client
// could put there. Never a 5xx, never a word of another organisation, never a changed row of it.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { Route } from "../../src/protocol/route.ts";
import { routes } from "../../src/protocol/routes.ts";
import type { NodeDouble } from "../kit/node-double.ts";
import { pathsOf, textWith, valueOf } from "../kit/schema-values.ts";
import { createWorld, type World } from "../kit/world.ts";
import { secondOrganisation } from "./kit.ts";

const table = (Object.entries(routes) as [string, Route][]).filter(([, route]) => route.stream !== true);

/** As JSON text, because some of it is no value of JavaScript. */
const raws: readonly string[] = [
  String.raw`"a\u0000b"`,
  String.raw`"\ud800"`,
  String.raw`{"\udfff":"\u0000"}`,
  '"\u{1F468}\u200D\u{1F469}\u200D\u{1F467}\u{1F3FF}"',
  "1e400",
  "-1e400",
  "9223372036854775808",
  "1970670598291982290",
  "-0",
  "1.5",
  `${"[".repeat(200)}${"]".repeat(200)}`,
  `${'{"a":'.repeat(40)}1${"}".repeat(40)}`,
  "null",
  "true",
  "[]",
  "{}",
  '""',
  JSON.stringify("x".repeat(300_000)),
  '{"__proto__":{"x":1},"constructor":null}',
  '"2024-02-30T00:00:00Z"',
  '"2024-01-01T00:00:00+99:99"',
  '"0000-01-01T00:00:00Z"',
  '"9999999999999999999"',
  '"111111111111111111"',
  "9007199254740992",
  "1e300",
  "[null]",
  `"nses_${"0".repeat(26)}"`,
  JSON.stringify("A".repeat(87_384)),
  JSON.stringify("A".repeat(43)),
  '"../../etc/passwd"',
  JSON.stringify("' or 1=1 --"),
];

type Sender = { readonly credential: string; readonly ids: Readonly<Record<string, string>> };

/** The address with ids of this kind at its places. */
function addressOf(route: Route, ids: Readonly<Record<string, string>>): string {
  return route.path.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? "0");
}

const senderOf = (world: World, node: NodeDouble, route: Route): string =>
  route.access.kind === "node" ? node.credential : world.token;

const zeros = "0".repeat(26);
const noIds: Record<string, string> = {
  jobId: `job_${zeros}`,
  nodeId: `node_${zeros}`,
  credentialId: `cred_${zeros}`,
  userId: `user_${zeros}`,
  modelId: `model_${zeros}`,
  projectId: `proj_${zeros}`,
};

async function post(url: string, route: Route, credential: string, body?: string) {
  const response = await fetch(url, {
    method: route.method,
    headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
    ...(route.method === "POST" ? { body: body ?? "{}" } : {}),
  });
  return { status: response.status, text: await response.text() };
}

type Shot = { readonly what: string; readonly send: () => Promise<{ status: number; text: string }> };

/** Everything that is sent to one route. */
function* shotsAt(world: World, node: NodeDouble, name: string, route: Route): Generator<Shot> {
  const credential = senderOf(world, node, route);
  const address = world.url + addressOf(route, noIds);
  const known = { sessionId: node.sessionId, waitMs: 0 };
  const body = route.body === undefined ? {} : valueOf(route.body, known);
  for (const place of route.method === "POST" ? pathsOf(body) : [])
    for (const raw of raws) {
      const send = () => post(address, route, credential, textWith(body, place, raw));
      yield { what: `${name} /${place.join("/")} ${raw.slice(0, 60)}`, send };
    }
  const query = route.query === undefined ? {} : (valueOf(route.query, {}) as Record<string, unknown>);
  for (const key of Object.keys(query))
    for (const raw of raws) {
      const value = encodeURIComponent(raw.slice(0, 4000).toWellFormed());
      yield {
        what: `${name} ?${key}=${raw.slice(0, 60)}`,
        send: () => post(`${address}?${key}=${value}`, route, credential),
      };
    }
  for (const param of route.path.match(/:\w+/g) ?? [])
    for (const value of ["%00", "%ed%a0%80", "%F0%9F%91%8D", "..%2f..", "1e400", "x".repeat(300), "%", "' or 1=1"]) {
      const url = world.url + addressOf({ ...route, path: route.path.replace(param, value) }, noIds);
      yield { what: `${name} ${url}`, send: () => post(url, route, credential) };
    }
}

test("every place of every route, with what no client should send, is answered and never with a 5xx", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const seen = new Map<number, number>();
  const shots = table.values().flatMap(([name, route]) => shotsAt(world, node, name, route));
  // Side by side, as clients come.
  const shoot = async (): Promise<void> => {
    for (const { what, send } of shots) {
      const { status, text } = await send();
      seen.set(status, (seen.get(status) ?? 0) + 1);
      assert.ok(status < 500, `${what}: ${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: 12 }, shoot));
  const sent = [...seen.values()].reduce((sum, count) => sum + count, 0);
  t.diagnostic(`${sent} requests: ${JSON.stringify(Object.fromEntries(seen))}`);
  assert.ok(sent > 5000, `${sent} requests`);
  assert.equal((await fetch(`${world.url}/v1/ready`)).status, 200);
});

test("a body of 10 MB is refused by every route that takes one, and the controller goes on", async (t) => {
  const world = await createWorld(t);
  const node = await world.node("a");
  const body = JSON.stringify({ command: ["x".repeat(10 * 2 ** 20)] });
  for (const [name, route] of table.filter(([, each]) => each.method === "POST")) {
    const url = world.url + addressOf(route, noIds);
    const answer = await post(url, route, senderOf(world, node, route), body).catch((error: unknown) => error);
    // Refused before all of it was sent: the answer may be lost with the connection.
    if (answer instanceof Error) continue;
    assert.equal((answer as { status: number }).status, 413, name);
  }
  assert.equal((await fetch(`${world.url}/v1/health`)).status, 200);
});

const MARK = "zebra";

/** An organisation with a row in every table, each text of it marked, and all ids that could be guessed. */
async function markedOrganisation(world: World) {
  const node = await world.node(`${MARK}-node`, { hostname: MARK });
  const model = await world.admin.call("modelAdd", { body: { name: `${MARK}-m`, description: MARK, marker: MARK } });
  const project = await world.admin.call("projectAdd", { body: { name: `${MARK}-p` } });
  const user = await world.admin.call("userCreate", { body: { name: `${MARK}-u`, role: "member" } });
  const token = await world.admin.call("tokenCreate", { body: { name: `${MARK}-t`, scopes: ["fleet:read"] } });
  await world.admin.call("loginLinkCreate", { body: {} });
  await world.admin.call("pairingCreate", { body: { name: `${MARK}-code` } });
  const command = ["echo", MARK];
  const job = await world.admin.call("jobSubmit", {
    body: { command, environment: { A: MARK }, labels: { a: MARK }, input: MARK, project: project.name },
    idempotencyKey: MARK,
  });
  const [lease] = await node.claim(1);
  await node.start(job.id, lease?.epoch ?? "");
  await node.log(job.id, lease?.epoch ?? "", { offset: 0, text: MARK });
  const ids: Sender["ids"] = {
    jobId: job.id,
    nodeId: node.nodeId,
    credentialId: token.id,
    userId: user.id,
    modelId: model.id,
    projectId: project.id,
  };
  return { ids, epoch: lease?.epoch ?? "", sessionId: node.sessionId };
}

/** Every row of an organisation but for the times of last use. */
async function digest(world: World, organisationId: string): Promise<string> {
  const names = await world.sql<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'organisation_id'
      where c.relkind = 'r' and c.relnamespace = 'app'::regnamespace order by 1`,
  );
  const rows = [];
  for (const { name } of names)
    rows.push(
      await world.sql(
        `select (to_jsonb(x) - 'last_used_at' - 'at')::text as row from app."${name}" x where organisation_id = $1 order by 1`,
        [organisationId],
      ),
    );
  return createHash("sha256").update(JSON.stringify(rows)).digest("hex");
}

test("P5: with every id of another organisation in hand, no route tells a word of it or changes a row of it", async (t) => {
  const world = await createWorld(t, { leaseMs: 3_600_000 });
  const marked = await markedOrganisation(world);
  const { organisationId } = await world.admin.call("whoami", {});
  const stranger = await secondOrganisation(world);
  const before = await digest(world, organisationId);
  let sent = 0;
  for (const [name, route] of table) {
    const credential = route.access.kind === "node" ? stranger.node.credential : stranger.token;
    for (const sessionId of [stranger.node.sessionId, marked.sessionId]) {
      const known = { ...marked.ids, epoch: marked.epoch, sessionId, waitMs: 0 };
      const body = route.body === undefined ? "{}" : JSON.stringify(valueOf(route.body, known));
      const query =
        route.query === undefined ? {} : (valueOf(route.query, { ...marked.ids }) as Record<string, string>);
      for (const search of [
        "",
        ...Object.entries(query).map(([key, value]) => `?${key}=${encodeURIComponent(value)}`),
      ]) {
        const { status, text } = await post(world.url + addressOf(route, marked.ids) + search, route, credential, body);
        sent++;
        assert.ok(status < 500, `${name}${search}: ${status} ${text}`);
        assert.ok(!text.includes(MARK), `${name}${search} tells: ${text}`);
        if (route.path.includes(":")) assert.ok(status >= 400, `${name} answered ${status} about a stranger's id`);
      }
    }
  }
  assert.equal(await digest(world, organisationId), before, "a row of the other organisation has changed");
  t.diagnostic(`${sent} requests by a stranger who knows every id`);
});
