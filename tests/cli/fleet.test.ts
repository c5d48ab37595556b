// SPDX-License-Identifier: Apache-2.0
// The people's commands against a real controller: what they print for people, as JSON, and what they never print.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";
import { assertClearFault, homeOf } from "./kit.ts";

const sleeping = ["sleep", "600"];

test("status says what needs attention, the nodes and the jobs, and exits 0 all the same", async (t) => {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  const empty = await home.run(["status"]);
  assert.equal(empty.code, 0);
  assert.match(empty.stdout, /No node yet: holdfast node pair NAME/);
  await world.node("anna");
  await world.admin.call("jobSubmit", { body: { command: sleeping, requires: { memoryBytes: 2 ** 50 } } });
  const { code, stdout } = await home.run(["status"]);
  assert.equal(code, 0);
  assert.match(stdout, /^NODE +STATE +JOBS/m);
  assert.match(stdout, /^anna +online/m);
  assert.match(stdout, /1 queued/);
  // What needs attention is a sentence and may be long; everything else is a table.
  for (const line of stdout.split("\n")) assert.ok(line.startsWith("! ") || line.length <= 100, line);
  assert.match(stdout, /^! 1 job is blocked: no node fits/);
  const { nodeList, jobs } = JSON.parse((await home.run(["status", "--json"])).stdout) as {
    nodeList: { name: string }[];
    jobs: { queued: number };
  };
  assert.deepEqual([nodeList.map((node) => node.name), jobs.queued], [["anna"], 1]);
});

test("a node is drained, activated and retired by name or by id, and one that is not there is named with those that are", async (t) => {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  const { nodeId } = await world.node("anna");
  assert.equal((await home.run(["node", "drain", "anna"])).stdout, "anna is draining.\n");
  assert.equal((await home.run(["node", "activate", nodeId])).stdout, "anna is active.\n");
  const shown = await home.run(["node", "show", "anna"]);
  assert.match(shown.stdout, new RegExp(`^id +${nodeId}$`, "m"));
  const missing = await home.run(["node", "drain", "bob"]);
  assert.equal(missing.code, 66);
  assertClearFault(missing.stderr);
  assert.match(missing.stderr, /bob.*anna/);
  assert.equal((await home.run(["node", "retire", "anna"])).stdout, "anna is retired.\n");
  assert.match((await home.run(["node", "list"])).stdout, /^anna +retired/m);
});

test("node pair prints the code alone on standard output, and it is in no command that it shows", async (t) => {
  const world = await createWorld(t);
  const { code, stdout, stderr } = await homeOf(t, world).run(["node", "pair", "anna"]);
  assert.equal(code, 0);
  assert.match(stdout, /^hfp_[\w-]{43}\n$/);
  assert.ok(!stderr.includes(stdout.trim()));
  for (const line of ["npm ci", "read -rs HOLDFAST_PAIRING_CODE", `holdfast agent --join ${world.url}`])
    assert.ok(stderr.includes(line), line);
});

test("a token's secret is printed once, alone on standard output, and works until it is revoked", async (t) => {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  const made = await home.run(["token", "create", "ci", "--scope", "fleet:read", "--expires-days", "3"]);
  const secret = made.stdout.trim();
  assert.match(secret, /^hft_[\w-]{43}$/);
  const listed = await home.run(["token", "list"]);
  assert.ok(!`${listed.stdout}${listed.stderr}${made.stderr}`.includes(secret));
  const id = /(cred_\w+) +ci +fleet:read +never +expires in/.exec(listed.stdout)?.[1] ?? "?";
  const own = { HOLDFAST_TOKEN: secret };
  assert.equal((await home.run(["job", "list"], own)).code, 0);
  const forbidden = await home.run(["job", "submit", "--", "true"], own);
  assert.equal(forbidden.code, 77);
  assertClearFault(forbidden.stderr);
  assert.equal((await home.run(["token", "revoke", id])).stdout, "Revoked ci.\n");
  assert.equal((await home.run(["job", "list"], own)).code, 77);
});

test("jobs are submitted with all options, listed, shown, traced and cancelled", async (t) => {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  await world.node("anna");
  const options =
    "-e A=1 -e B=x=y --env-from COPIED --cwd /srv --memory 1GiB --arch x64 --node anna --priority -3 --time-limit 10m " +
    "--retries 2 --not-before 2100-01-01T00:00:00Z --label team=blue";
  const sent = await home.run(["job", "submit", ...options.split(" "), "--", "make", "--json", "it's"], {
    COPIED: "here",
  });
  assert.match(sent.stdout, /^job_\w{26}\n$/);
  const id = sent.stdout.trim();
  const shown = JSON.parse((await home.run(["job", "show", id, "--json"])).stdout) as Record<string, unknown>;
  const node = (await world.admin.call("nodeList", {})).items[0];
  const wanted = {
    state: "scheduled",
    command: ["make", "--json", "it's"],
    environment: { A: "1", B: "x=y", COPIED: "here" },
    workingDirectory: "/srv",
    requires: { memoryBytes: 2 ** 30, arch: "x64", nodeId: node?.id },
    priority: -3,
    timeLimitMs: 600_000,
    retry: { maxAttempts: 3, onFailure: true },
    notBefore: "2100-01-01T00:00:00.000Z",
    labels: { team: "blue" },
  };
  assert.partialDeepStrictEqual(shown, wanted);
  assert.match((await home.run(["job", "show", id])).stdout, /labels +team=blue/);
  assert.match((await home.run(["job", "list", "--state", "scheduled"])).stdout, new RegExp(`^${id} +scheduled`, "m"));
  assert.match((await home.run(["job", "events", id])).stdout, /^1 .* created /m);
  assert.equal((await home.run(["job", "cancel", id])).stdout, `${id} is cancelled.\n`);
  const again = await home.run(["job", "show", id, "--json"]);
  assert.equal((JSON.parse(again.stdout) as { state: string }).state, "cancelled");
});

test("an idempotency key submits once, and is refused for another job", async (t) => {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  const submit = (...command: readonly string[]) =>
    home.run(["job", "submit", "--idempotency-key", "k1", "--", ...command]);
  const first = await submit("true");
  assert.deepEqual(await submit("true"), first);
  const other = await submit("false");
  assert.equal(other.code, 76);
  assertClearFault(other.stderr);
});

test("logs go to the stream that they came from, or one of them alone, or as JSON lines", async (t) => {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  const anna = await world.node("anna");
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["x"] } });
  const [{ epoch } = { epoch: "" }] = await anna.claim(1);
  await anna.start(id, epoch);
  await anna.log(id, epoch, { offset: 0, text: "to out\n" });
  await anna.log(id, epoch, { offset: 0, text: "to err\n", stream: "stderr" });
  await anna.end(id, epoch);
  for (const args of [
    ["job", "logs", id],
    ["job", "logs", "-f", id],
  ])
    assert.deepEqual(await home.run(args), { code: 0, stdout: "to out\n", stderr: "to err\n" });
  assert.deepEqual(await home.run(["job", "logs", "--only", "stdout", id]), {
    code: 0,
    stdout: "to out\n",
    stderr: "",
  });
  const lines = (await home.run(["job", "logs", "--json", id])).stdout.trim().split("\n");
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { text: string }).text),
    ["to out\n", "to err\n"],
  );
});

test("what a job or a node carries cannot drive the terminal of the one who looks", async (t) => {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  const evil = "\u001B]0;owned\u0007\u001B[2J";
  await world.node("anna", { cpuName: evil, hostname: evil });
  const body = { command: ["echo", evil], labels: { a: evil }, environment: { A: evil } };
  const { id } = await world.admin.call("jobSubmit", { body });
  for (const args of [["job", "list"], ["job", "show", id], ["node", "show", "anna"], ["status"]]) {
    const { stdout, code } = await home.run(args);
    assert.equal(code, 0);
    // oxlint-disable-next-line no-control-regex -- these are the ones
    assert.doesNotMatch(stdout, /[\u0000-\u0009\u000B-\u001F\u007F-\u009F]/, args.join(" "));
  }
});

test("a job that has ended keeps no other from being cancelled, and is named", async (t) => {
  const world = await createWorld(t);
  const home = homeOf(t, world);
  const submit = async () => (await world.admin.call("jobSubmit", { body: { command: sleeping } })).id;
  const [ended, waiting] = [await submit(), await submit()];
  await world.admin.call("jobCancel", { params: { jobId: ended } });
  const anna = await world.node("anna");
  const [claimed] = await anna.claim(1);
  assert.equal(claimed?.jobId, waiting);
  await anna.end(waiting, claimed?.epoch ?? "");
  const third = await submit();
  const { code, stdout, stderr } = await home.run(["job", "cancel", waiting, third]);
  assert.deepEqual([code, stdout], [76, `${third} is cancelled.\n`]);
  assert.match(stderr, new RegExp(waiting));
});

test("the ledger of a job is shown to its end, however many pages it has", async (t) => {
  const world = await createWorld(t);
  const anna = await world.node("anna");
  const { id } = await world.admin.call("jobSubmit", { body: { command: sleeping } });
  for (let round = 0; round < 101; round++) {
    const [claimed] = await until("it is claimed", () =>
      anna.claim(1).then((jobs) => (jobs.length > 0 ? jobs : undefined)),
    );
    await anna.start(id, claimed?.epoch ?? "");
    await anna.end(id, claimed?.epoch ?? "", { exitCode: 1, stopped: "release" });
  }
  const { stdout } = await homeOf(t, world).run(["job", "events", id, "--json"]);
  const events = JSON.parse(stdout) as { seq: number }[];
  assert.ok(events.length > 200, String(events.length));
  assert.deepEqual(
    events.map((event) => event.seq),
    Array.from(events, (_, index) => index + 1),
  );
});

test("--env-from takes one name and leaves the command alone", async (t) => {
  const world = await createWorld(t);
  const { stdout } = await homeOf(t, world).run(
    ["job", "submit", "--env-from", "A", "--env-from", "B", "make", "test"],
    {
      A: "1",
      B: "2",
    },
  );
  const job = await world.admin.call("jobShow", { params: { jobId: stdout.trim() } });
  assert.deepEqual([job.command, job.environment], [["make", "test"], { A: "1", B: "2" }]);
});
