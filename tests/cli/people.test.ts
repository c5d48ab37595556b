// SPDX-License-Identifier: Apache-2.0
// People, registries, audit and doctor by the real command against a real controller.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { createWorld } from "../kit/world.ts";
import { assertClearFault, homeOf } from "./kit.ts";

test("a user is added, let in by a link that works once, changed, signed out and disabled", async (t) => {
  const world = await createWorld(t);
  const { run } = homeOf(t, world);
  assert.match((await run(["user", "add", "bea"])).stdout, /bea is member\. Let them in with: holdfast login-link bea/);
  const link = await run(["login-link", "bea"]);
  assert.match(link.stderr, /^Signs in as bea, once, until /);
  const [, secret] = /#(hfl_\S+)/.exec(link.stdout) ?? [];
  const signIn = () =>
    fetch(`${world.url}/v1/sign-in/link`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ secret }),
    });
  assert.deepEqual([(await signIn()).status, (await signIn()).status], [200, 401]);
  assert.match((await run(["credential", "list"])).stdout, /browser +bea +a browser on an unknown system/);
  assert.match((await run(["user", "role", "bea", "admin"])).stdout, /bea is admin/);
  assert.match((await run(["user", "sign-out", "bea"])).stdout, /Signed out of 1 browser\./);
  assert.match((await run(["user", "disable", "bea"])).stdout, /bea is admin, disabled/);
  assert.match((await run(["user", "list"])).stdout, /bea +admin +no .* disabled (now|\d+ s ago)/);
  assert.match((await run(["user", "enable", "bea"])).stdout, /bea is admin\.$/m);
  const { stdout } = await run(["audit", "--action", "user", "--limit", "3"]);
  assert.match(stdout, /admin +user\.enable +bea/);
});

test("what cannot be done to a user is said with the reason and what there is", async (t) => {
  const world = await createWorld(t);
  const { run } = homeOf(t, world);
  const faults = [
    [["user", "disable", "admin"], /last admin/, 76],
    [["user", "role", "admin", "boss"], /admin or member/, 64],
    [["user", "disable", "nobody"], /there is no user nobody; there are admin/, 66],
    [["login-link", "nobody"], /there is no user nobody/, 66],
    [["user", "add", "-x"], /unknown option/, 64],
    [["user", "add", "admin"], /a user named admin exists/, 76],
    [["model", "retire", "none"], /there is no model none/, 66],
    [["project", "retire", "none"], /there is no project none/, 66],
    [["job", "submit", "--model", "none", "--project", "nil", "--", "true"], /\/requires\/model.*\n.*\/project/s, 65],
  ] as const;
  for (const [args, message, code] of faults) {
    const { stderr, code: exit } = await run(args);
    assertClearFault(stderr);
    assert.match(stderr, message);
    assert.equal(exit, code, args.join(" "));
  }
});

test("a password is taken from a pipe, needs the present one the next time, and is never in argv", async (t) => {
  const world = await createWorld(t);
  const { run } = homeOf(t, world);
  const withInput = (text: string) => run(["password"], {}, text);
  assert.match((await withInput("")).stderr, /one line was expected on standard input/);
  assert.match((await withInput("short\n")).stderr, /has 5 characters: at least 10/);
  assert.match((await withInput("a long password\n")).stdout, /admin signs in with the new password/);
  assert.match((await withInput("another password\n")).stderr, /two lines were expected/);
  assert.match((await withInput("wrong\nanother password\n")).stderr, /current password is wrong/);
  assert.equal((await withInput("a long password\nanother password\n")).code, 0);
});

test("models and projects are registered, listed and used by jobs", async (t) => {
  const world = await createWorld(t);
  const { run } = homeOf(t, world);
  assert.match((await run(["model", "list"])).stdout, /No model yet/);
  assert.match(
    (await run(["model", "add", "qwen", "--memory", "4GiB", "--arch", "x64", "--marker", "q8"])).stdout,
    /qwen \(4\.0 GiB of memory, x64\)/,
  );
  assert.match((await run(["model", "show", "qwen"])).stdout, /marker +q8/);
  await run(["project", "add", "speech"]);
  const { stdout: id } = await run(["job", "submit", "--model", "qwen", "--project", "speech", "--", "true"]);
  assert.match((await run(["job", "show", id.trim()])).stdout, /project +speech/);
  assert.match((await run(["job", "list", "--project", "speech"])).stdout, new RegExp(id.trim()));
  assert.match((await run(["job", "list", "--search", "nothing like it"])).stdout, /No job is like that/);
  assert.match((await run(["project", "retire", "speech"])).stdout, /1 of its jobs go on/);
  assert.match((await run(["model", "retire", "qwen"])).stdout, /qwen is retired/);
});

test("doctor finds a healthy controller, and names what is broken with what to do and exit code 1", async (t) => {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  const healthy = await home.run(["doctor"]);
  assert.equal(healthy.code, 0, healthy.stdout);
  assert.match(healthy.stdout, /✓ credential +admin/);
  assert.match(healthy.stdout, /✓ database +PostgreSQL/);
  assert.match(healthy.stdout, /! root .*does not exist/);

  const node = path.join(home.root, "node");
  fs.mkdirSync(node, { recursive: true });
  fs.chmodSync(home.root, 0o777);
  fs.writeFileSync(path.join(node, "credential"), `hfn_${"a".repeat(43)}\n`);
  fs.chmodSync(path.join(node, "credential"), 0o644);
  fs.writeFileSync(
    path.join(node, "agent.json"),
    JSON.stringify({ controllerUrl: world.url, nodeId: `node_${"0".repeat(26)}`, name: "anna" }),
  );
  fs.mkdirSync(path.join(home.root, "database"), { mode: 0o700 });
  fs.writeFileSync(path.join(home.root, "database", "PG_VERSION"), "13\n");
  const broken = await home.run(["doctor"], { HOLDFAST_TOKEN: `hft_${"a".repeat(43)}` });
  assert.equal(broken.code, 1);
  for (const finding of [
    /✗ controller +.*unknown, expired or revoked/,
    /✗ root +.*can be written by other accounts \(mode 777\)\n +Run: chmod go-w/,
    /✗ secrets +others can read .*credential\n +Run: chmod 600/,
    /✗ database files +written by PostgreSQL 13/,
    /✗ node +.*credential has mode 0644/,
  ])
    assert.match(broken.stdout, finding);
  fs.chmodSync(path.join(node, "credential"), 0o600);
  const json = await home.run(["doctor", "--json"], { HOLDFAST_URL: "http://127.0.0.1:1" });
  const found = JSON.parse(json.stdout) as Record<string, { name: string; state: string; text: string }[]>;
  assert.deepEqual(
    found["controller"]?.map(({ name, state }) => `${name} ${state}`),
    ["context ok", "controller fault"],
  );
  const names = found["this machine"]?.map(({ name, state }) => `${name} ${state}`) ?? [];
  for (const wanted of ["agent fault", "way to the controller fault", "launcher ok", "disk ok"])
    assert.ok(names.includes(wanted), names.join());
});

test("doctor shows what is wrong with the fleet", async (t) => {
  const world = await createWorld(t);
  await world.node("a");
  await world.sql("update app.node_heartbeat set at = now() - interval '1 hour', clock_offset_ms = 3600000");
  const { stdout, code } = await homeOf(t, world).run(["doctor"]);
  assert.match(stdout, /✗ fleet +node a is offline, last seen/);
  assert.equal(code, 1);
});
