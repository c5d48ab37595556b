// SPDX-License-Identifier: Apache-2.0
// How people get in and are put out: one-time links, passwords, cookies with CSRF protection, roles, signing out everywhere.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createClient } from "../../src/client/client.ts";
import { CSRF_HEADER } from "../../src/protocol/route.ts";
import { createWorld, type World } from "../kit/world.ts";

type Answer = { readonly status: number; readonly body: Record<string, unknown>; readonly cookie: string | undefined };

async function send(
  world: World,
  path: string,
  options: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const response = await fetch(world.url + path, {
    method: options.method ?? "POST",
    headers: { "content-type": "application/json", ...options.headers },
    ...(options.method === "GET" ? {} : { body: JSON.stringify(options.body ?? {}) }),
  });
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown>,
    cookie: response.headers.get("set-cookie") ?? undefined,
  };
}

const secretOf = (path: string): string => path.split("#")[1] ?? "";

/** A browser that is signed in by a link: its cookie and its CSRF token. */
async function signIn(world: World, userId?: string) {
  const link = await world.admin.call("loginLinkCreate", { body: userId === undefined ? {} : { userId } });
  const answer = await send(world, "/v1/sign-in/link", { body: { secret: secretOf(link.path) } });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  const cookie = answer.cookie?.split(";")[0] ?? "";
  return { cookie, csrf: String(answer.body["csrfToken"]), who: answer.body, setCookie: answer.cookie ?? "" };
}

test("a login link signs a browser in once, with a cookie that scripts and other sites cannot use", async (t) => {
  const world = await createWorld(t);
  const link = await world.admin.call("loginLinkCreate", { body: {} });
  const secret = secretOf(link.path);
  const first = await send(world, "/v1/sign-in/link", { body: { secret } });
  assert.equal(first.status, 200);
  assert.match(first.cookie ?? "", /^holdfast_\d+=hfb_[\w-]{43}; Max-Age=604800; Path=\/; HttpOnly; SameSite=Strict$/);
  assert.equal(first.body["userName"], "admin");
  assert.ok(!JSON.stringify(first.body).includes("hfb_"), "the answer's body holds no secret");
  const again = await send(world, "/v1/sign-in/link", { body: { secret } });
  assert.equal(again.status, 401);
  assert.equal(again.body["code"], "sign_in_refused");
  assert.match(String(again.body["message"]), /used before/);
  const me = await send(world, "/v1/whoami", {
    method: "GET",
    headers: { cookie: first.cookie?.split(";")[0] ?? "" },
  });
  assert.equal(me.body["csrfToken"], first.body["csrfToken"]);
  assert.equal(me.body["credentialKind"], "browser");
});

test("of 16 browsers that use one link at the same time exactly one gets in", async (t) => {
  const world = await createWorld(t);
  const { path } = await world.admin.call("loginLinkCreate", { body: {} });
  const tries = Array.from({ length: 16 }, () => send(world, "/v1/sign-in/link", { body: { secret: secretOf(path) } }));
  const statuses = (await Promise.all(tries)).map((answer) => answer.status).sort();
  assert.deepEqual(statuses, [200, ...Array.from({ length: 15 }, () => 401)]);
});

test("a link that has expired, one for a disabled user and an invented one are refused, each with what to do", async (t) => {
  const world = await createWorld(t);
  const bea = await world.admin.call("userCreate", { body: { name: "bea", role: "member" } });
  const old = await world.admin.call("loginLinkCreate", { body: {} });
  await world.sql("update app.login_link set expires_at = now()");
  const forBea = await world.admin.call("loginLinkCreate", { body: { userId: bea.id } });
  await world.admin.call("userDisable", { params: { userId: bea.id } });
  const expect = async (secret: string, message: RegExp): Promise<void> => {
    const { status, body } = await send(world, "/v1/sign-in/link", { body: { secret } });
    assert.equal(status, 401);
    assert.match(String(body["message"]), message);
  };
  await expect(secretOf(old.path), /expired/);
  await expect(secretOf(forBea.path), /used before|disabled/);
  await expect(`hfl_${"a".repeat(43)}`, /no such login link/);
  await assert.rejects(world.admin.call("loginLinkCreate", { body: { userId: bea.id } }), { code: "conflict" });
});

test("whatever a cookie lets in and changes something needs the CSRF token; a bearer needs none; a cookie secret is no bearer", async (t) => {
  const world = await createWorld(t);
  const { cookie, csrf } = await signIn(world);
  const body = { command: ["true"] };
  assert.equal((await send(world, "/v1/jobs", { body, headers: { cookie } })).status, 403);
  assert.equal((await send(world, "/v1/jobs", { body, headers: { cookie, [CSRF_HEADER]: `${csrf}x` } })).status, 403);
  assert.equal((await send(world, "/v1/jobs", { body, headers: { cookie, [CSRF_HEADER]: csrf } })).status, 201);
  const asBearer = { authorization: `Bearer ${cookie.split("=")[1]}` };
  assert.equal((await send(world, "/v1/jobs", { body, headers: asBearer })).status, 401);
  const asCookie = { cookie: `${cookie.split("=")[0]}=${world.token}`, [CSRF_HEADER]: csrf };
  assert.equal((await send(world, "/v1/jobs", { body, headers: asCookie })).status, 401);
});

test("no other site can sign a browser in", async (t) => {
  const world = await createWorld(t);
  const { path } = await world.admin.call("loginLinkCreate", { body: {} });
  const body = { secret: secretOf(path) };
  for (const headers of [{ origin: "https://evil.example" }, { origin: "null" }]) {
    assert.equal((await send(world, "/v1/sign-in/link", { body, headers })).status, 403);
  }
  assert.equal((await send(world, "/v1/sign-in/link", { body, headers: { origin: world.url } })).status, 200);
});

async function withPassword(t: TestContext) {
  const world = await createWorld(t);
  const browser = await signIn(world);
  const headers = { cookie: browser.cookie, [CSRF_HEADER]: browser.csrf };
  const set = await send(world, "/v1/password", { body: { newPassword: "a long password" }, headers });
  assert.equal(set.status, 200, JSON.stringify(set.body));
  return { world, headers };
}

test("a password signs in, a wrong one and an unknown name get the same answer, and the database holds argon2id", async (t) => {
  const { world } = await withPassword(t);
  const post = (name: string, password: string) => send(world, "/v1/sign-in/password", { body: { name, password } });
  assert.equal((await post("admin", "a long password")).status, 200);
  const wrong = await post("admin", "a long passwort");
  const unknown = await post("nobody", "a long password");
  assert.equal(wrong.status, 401);
  assert.deepEqual([wrong.body["code"], wrong.body["message"]], [unknown.body["code"], unknown.body["message"]]);
  const [row] = await world.sql<{ hash: string }>("select hash from app.password");
  assert.match(row?.hash ?? "", /^\$argon2id\$/);
});

test("changing a password needs the present one, and signs every other browser out", async (t) => {
  const { world, headers } = await withPassword(t);
  const other = await signIn(world);
  const change = (body: unknown) => send(world, "/v1/password", { body, headers });
  assert.equal((await change({ newPassword: "another password" })).status, 401);
  assert.equal((await change({ newPassword: "short", currentPassword: "a long password" })).status, 400);
  assert.equal((await change({ newPassword: "another password", currentPassword: "a long password" })).status, 200);
  const whoami = (cookie: string) => send(world, "/v1/whoami", { method: "GET", headers: { cookie } });
  assert.equal((await whoami(other.cookie)).status, 401);
  assert.equal((await whoami(headers.cookie)).status, 200);
});

test("a token with less than its owner's rights cannot make itself a way in with all of them", async (t) => {
  const world = await createWorld(t);
  const reader = await world.people("fleet:read", "fleet:write");
  await assert.rejects(reader.call("passwordSet", { body: { newPassword: "a long password" } }), { code: "forbidden" });
  await assert.rejects(reader.call("loginLinkCreate", { body: {} }), { code: "forbidden" });
});

test("tries to sign in are limited by name and by address", async (t) => {
  const { world } = await withPassword(t);
  const statuses: number[] = [];
  for (let tries = 0; tries < 40; tries++) {
    const name = tries < 14 ? "admin" : `n${tries}`;
    statuses.push((await send(world, "/v1/sign-in/password", { body: { name, password: "no" } })).status);
  }
  assert.ok(statuses.slice(8, 14).includes(429), statuses.join(" "));
  assert.ok(statuses.slice(14).includes(429), statuses.join(" "));
});

test("signing out ends this browser, signing out everywhere ends all of a user's, and only an admin does it to others", async (t) => {
  const world = await createWorld(t);
  const bea = await world.admin.call("userCreate", { body: { name: "bea", role: "member" } });
  const [one, two, three] = [await signIn(world, bea.id), await signIn(world, bea.id), await signIn(world)];
  const whoami = async (cookie: string) =>
    (await send(world, "/v1/whoami", { method: "GET", headers: { cookie } })).status;
  const out = await send(world, "/v1/sign-out", { headers: { cookie: one.cookie, [CSRF_HEADER]: one.csrf } });
  assert.equal(out.status, 200);
  assert.match(out.cookie ?? "", /^holdfast_\d+=; Max-Age=0/);
  assert.equal(await whoami(one.cookie), 401);
  const admin = String(three.who["userId"]);
  const asBea = { cookie: two.cookie, [CSRF_HEADER]: two.csrf };
  assert.equal((await send(world, `/v1/users/${admin}/sign-out`, { headers: asBea })).status, 403);
  assert.deepEqual(await world.admin.call("userSignOut", { params: { userId: bea.id } }), { signedOut: 1 });
  assert.equal(await whoami(two.cookie), 401);
  assert.equal(await whoami(three.cookie), 200);
  await assert.rejects(world.admin.call("signOut", {}), { code: "conflict" });
});

test("a role counts from the next request on, for tokens too, and the last admin stays", async (t) => {
  const world = await createWorld(t);
  const { userId } = await world.admin.call("whoami", {});
  const params = { userId };
  await assert.rejects(world.admin.call("userDisable", { params }), { code: "conflict", message: /last admin/ });
  await assert.rejects(world.admin.call("userRole", { params, body: { role: "member" } }), { code: "conflict" });
  const carl = await world.admin.call("userCreate", { body: { name: "carl", role: "admin" } });
  const browser = await signIn(world, carl.id);
  const asCarl = { cookie: browser.cookie, [CSRF_HEADER]: browser.csrf };
  const made = await send(world, "/v1/tokens", { body: { name: "carls", scopes: ["fleet:admin"] }, headers: asCarl });
  const carls = createClient({ baseUrl: world.url, credential: String(made.body["secret"]) });
  await carls.call("auditList", {});
  await world.admin.call("userRole", { params: { userId: carl.id }, body: { role: "member" } });
  await assert.rejects(carls.call("auditList", {}), { code: "forbidden" });
  await world.admin.call("userDisable", { params: { userId: carl.id } });
  await assert.rejects(carls.call("overview", {}), { code: "unauthenticated" });
  await world.admin.call("userEnable", { params: { userId: carl.id } });
  await assert.rejects(carls.call("overview", {}), { code: "unauthenticated" });
});

test("two admins who disable each other at the same moment do not both succeed", async (t) => {
  const world = await createWorld(t);
  const { userId: first } = await world.admin.call("whoami", {});
  for (let round = 0; round < 5; round++) {
    const other = await world.admin.call("userCreate", { body: { name: `admin-${round}`, role: "admin" } });
    const browser = await signIn(world, other.id);
    const headers = { cookie: browser.cookie, [CSRF_HEADER]: browser.csrf };
    const tries = [
      send(world, `/v1/users/${other.id}/disable`, { headers: { authorization: `Bearer ${world.token}` } }),
      send(world, `/v1/users/${first}/disable`, { headers }),
    ];
    await Promise.all(tries);
    const active = await world.sql(`select id from app."user" where role = 'admin' and disabled_at is null`);
    assert.equal(active.length, 1);
    // Whoever was disabled is brought back for the next round.
    await world.sql(`update app."user" set disabled_at = null where id = $1`, [first]);
    await world.sql("update app.credential set revoked_at = null where kind = 'token'");
    await world.sql(`update app."user" set disabled_at = coalesce(disabled_at, now()) where id = $1`, [other.id]);
  }
});

test("P12: a password, a login link and a browser's secret are nowhere in the database in clear, and each is in the audit", async (t) => {
  const { world, headers } = await withPassword(t);
  const { path } = await world.admin.call("loginLinkCreate", { body: {} });
  const tables = ["credential", "login_link", "password", "audit"].map(
    (name) => `(select json_agg(x) from app.${name} x) as ${name}`,
  );
  const dump = JSON.stringify(await world.sql(`select ${tables.join(", ")}`));
  for (const clear of ["a long password", secretOf(path).slice(4), headers.cookie.split("=")[1]?.slice(4) ?? "?"])
    assert.ok(!dump.includes(clear));
  const actions = (await world.admin.call("auditList", { query: { action: "user" } })).items.map(
    (entry) => entry.action,
  );
  assert.deepEqual(actions, ["user.login-link", "user.password", "user.sign-in", "user.login-link"]);
});

test("P5: the database itself lets no browser in, makes no link and sets no password but where signing in does", async (t) => {
  const world = await createWorld(t);
  const { organisationId, userId } = await world.admin.call("whoami", {});
  const asTenant = (scopes: string[], sql: string, params: unknown[]) =>
    world.db.tenant({ organisationId, scopes }, (tx) => tx.query(sql, params));
  const browser = `insert into app.credential (organisation_id, id, kind, name, user_id, hash, scopes, expires_at)
    values ($1, 'cred_x', 'browser', 'x', $2, sha256('x'), '{fleet:read}', now())`;
  const link =
    "insert into app.login_link (organisation_id, id, user_id, hash, expires_at) values ($1, 'link_x', $2, sha256('y'), now())";
  const password =
    "insert into app.password (organisation_id, user_id, sign_in_name, hash) values ($1, $2, 'n', '$argon2id$')";
  const everything = ["fleet:read", "fleet:write", "fleet:admin"];
  for (const [sql, scopes] of [
    [browser, everything],
    [link, ["fleet:write"]],
    [password, everything],
  ] as const)
    await assert.rejects(asTenant([...scopes], sql, [organisationId, userId]), { code: "42501" }, sql);
  await assert.rejects(asTenant(everything, "select hash from app.password", []), { code: "42501" });
  await assert.rejects(
    asTenant(
      ["fleet:write"],
      `insert into app."user" (organisation_id, id, name, role) values ($1, 'user_x', 'x', 'admin')`,
      [organisationId],
    ),
    { code: "42501" },
  );
  const raised = await asTenant(["fleet:write"], `update app."user" set role = 'admin' where id = $1`, [userId]);
  assert.equal(raised.count, 0);
});
