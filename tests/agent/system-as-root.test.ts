// SPDX-License-Identifier: Apache-2.0
// A node as root installs it, under a real systemd: its jobs have an account of their own and reach nothing of the agent's, no
// restart and no death of the agent disturbs them, no secret is where others can look, and a refused node stays down.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { readOrEmpty } from "../../src/std/files.ts";
import { until } from "../kit/until.ts";
import { jobState, outputOf } from "./kit.ts";
import { type Installed, installNode, ROOT, runtime, startInstalled, UNIT } from "./system-kit.ts";

const SLOW = { withinMs: 60_000 };
const LOOK_MS = 10;

test("a node under systemd as root installs it", async (t) => {
  const argvs = new Set<string>();
  const watch = new AbortController();
  const node = await installNode(t, "HOLDFAST_LOG_LEVEL=debug\n", ({ root }) =>
    watchArguments(root, argvs, watch.signal),
  );
  await startInstalled(node);
  watch.abort();
  await t.test("D33: a job has an account of its own and reaches nothing of the agent's", () => stealing(node));
  await t.test("a job has its input, its folder and its result, whatever modes it leaves", () => using(node));
  await t.test("D40: jobs are the same through a restart and a death of the agent", () => disturbing(node));
  await t.test("a job that hears nothing is ended by its account's shim, all of it", () => stopping(node));
  await t.test("D42: doctor shows what the unit asks for and what the agent got", () => seeing(node));
  await t.test("D35: what the node made has these modes", () => assert.deepEqual(modesOf(node), MODES));
  await t.test("D31, D34, D36: no secret in an argument, a unit, a log or a file that others read", () =>
    exposing(node, argvs),
  );
  await t.test("D37: a refused node says so in one line and stays down", () => refusing(node));
});

async function run(node: Installed, command: readonly string[], body: object = {}): Promise<string> {
  const { world } = node;
  const { id } = await world.admin.call("jobSubmit", { body: { command: [...command], ...body } });
  const job = await until(
    "the job ended",
    async () => {
      const now = await world.admin.call("jobShow", { params: { jobId: id } });
      return ["succeeded", "failed"].includes(now.state) ? now : undefined;
    },
    SLOW,
  );
  const said = await outputOf(world, id);
  assert.equal(job.state, "succeeded", `${said}${await outputOf(world, id, "stderr")}\n${node.journal()}`);
  return said;
}

async function stealing(node: Installed): Promise<void> {
  const thief = "/opt/holdfast/tests/agent/thief-main.ts";
  const said = await run(node, [runtime, thief, String(node.mainPid()), ROOT, "/run/holdfast/launch"]);
  const idOf = (flag: string): number => Number(node.system.ok("id", flag, "holdfast-job"));
  assert.deepEqual(JSON.parse(said), { uid: idOf("-u"), groups: [idOf("-g")], reached: [] });
}

async function using(node: Installed): Promise<void> {
  const script = `cat "$HOLDFAST_INPUT" && echo to stderr > /dev/stderr && mkdir -p kept/by && touch kept/by/file &&
    chmod 500 kept/by && chmod 1700 kept && umask 077 && echo '{"sum":3}' > "$HOLDFAST_RESULT.tmp" &&
    mv "$HOLDFAST_RESULT.tmp" "$HOLDFAST_RESULT" && cat /proc/self/oom_score_adj`;
  assert.equal(await run(node, ["sh", "-c", script], { input: { q: 1 } }), '{"q":1}0\n');
  const { items } = await node.world.admin.call("jobList", {});
  assert.deepEqual((await node.world.admin.call("jobShow", { params: { jobId: items[0]?.id ?? "" } })).result, {
    sum: 3,
  });
  const launches = node.fileOf(`${ROOT}/node/launches`);
  await until("its folder is gone, with what it made unreadable", () => fs.readdirSync(launches).length === 0, SLOW);
}

/** A job that runs, known by the pid that it has on the machine. */
async function running(node: Installed, script: string): Promise<{ readonly id: string; readonly mark: string }> {
  const mark = `mark${Math.trunc(performance.now())}`;
  const body = { command: ["sh", "-c", `${script} # ${mark}`] };
  const { id } = await node.world.admin.call("jobSubmit", { body });
  await until("it runs", async () => (await outputOf(node.world, id)).includes("up"), SLOW);
  return { id, mark };
}

/** Who has the mark in its arguments: pid and start, as the system sees it. */
function whoHas({ system }: Installed, mark: string): string {
  return system.ok(
    "sh",
    "-c",
    `pgrep -f 'u[p].*${mark}' | while read p; do echo $p $(cut -d' ' -f22 /proc/$p/stat); done`,
  );
}

async function disturbing(node: Installed): Promise<void> {
  const { system, world } = node;
  const { id, mark } = await running(node, "echo up; until [ -e /tmp/go ]; do sleep 0.1; done");
  const before = whoHas(node, mark);
  assert.match(before, /^\d+ \d+\n$/);
  for (const act of ["restart", "kill"]) {
    const pid = node.mainPid();
    if (act === "restart") system.ok("systemctl", "restart", UNIT);
    else system.ok("systemctl", "kill", "--kill-whom=main", "--signal=KILL", UNIT);
    await until("another agent is there", () => node.mainPid() !== pid && !node.isThere(pid), SLOW);
    const { lastHeartbeatAt } = await node.node();
    await until("it is online", async () => (await node.node()).lastHeartbeatAt !== lastHeartbeatAt, SLOW);
    assert.equal(whoHas(node, mark), before, `after a ${act}`);
  }
  assert.equal(system.ok("pgrep", "-cf", "holdfast.js agent").trim(), "1", "one agent");
  system.ok("touch", "/tmp/go");
  assert.equal((await jobState(world, id, "succeeded")).attempt, 1);
  await until("nothing of it is left", () => system.run(["pgrep", "-u", "holdfast-job"]).code === 1, SLOW);
  const units = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "holdfast-launch@*"];
  await until("its unit is gone", () => system.ok(...units) === "", SLOW);
}

async function stopping(node: Installed): Promise<void> {
  const deaf =
    "trap '' TERM; echo up; (setsid sh -c \"trap '' TERM; while :; do sleep 1; done\" & ) ; while :; do sleep 1; done";
  const { id } = await running(node, deaf);
  await node.world.admin.call("jobCancel", { params: { jobId: id } });
  await jobState(node.world, id, "cancelled");
  assert.equal(node.system.run(["pgrep", "-u", "holdfast-job"]).code, 1, "nothing of it runs");
}

async function seeing({ system }: Installed): Promise<void> {
  const { stdout } = await system.runBeside(["/usr/local/bin/holdfast", "doctor", "--root", ROOT]);
  assert.match(stdout, /jobs +run as holdfast-job, outside of the agent's sandbox/);
  assert.match(
    stdout,
    /✓ sandbox +NoNewPrivileges: asked yes, got it; SystemCallFilter: asked yes, got it; ProtectSystem: asked strict, got it/,
  );
}

const MODES = {
  "/etc/holdfast/agent.env": "600 root:root",
  "/etc/systemd/system/holdfast-agent.service": "644 root:root",
  "/etc/systemd/system/holdfast-launch.socket": "644 root:root",
  "/etc/systemd/system/holdfast-launch@.service": "644 root:root",
  "/run/holdfast": "755 root:root",
  "/run/holdfast/launch": "600 holdfast:holdfast",
  "/var/lib/holdfast": "755 holdfast:holdfast",
  "/var/lib/holdfast/.kuda": "700 holdfast:holdfast",
  "/var/lib/holdfast/node": "710 holdfast:holdfast-job",
  "/var/lib/holdfast/node/agent.json": "600 holdfast:holdfast",
  "/var/lib/holdfast/node/agent.lock": "600 holdfast:holdfast",
  "/var/lib/holdfast/node/credential": "600 holdfast:holdfast",
  "/var/lib/holdfast/node/launches": "710 holdfast:holdfast-job",
  "/var/lib/holdfast/node/locker": "700 holdfast:holdfast",
  "/var/lib/holdfast/node/node.key": "600 holdfast:holdfast",
  "/var/lib/holdfast/node/sandbox.json": "600 holdfast:holdfast",
};

/** Of all that is there but what lies in directories that nobody else may enter. */
function modesOf({ system }: Installed): Readonly<Record<string, string>> {
  const places = [
    "/etc/holdfast/*",
    "/etc/systemd/system/holdfast*",
    "/run/holdfast /run/holdfast/*",
    ROOT,
    `${ROOT}/.[a-z]*`,
    `${ROOT}/*`,
    `${ROOT}/node/*`,
  ];
  const lines = system
    .ok("sh", "-c", `stat -c '%n=%a %U:%G' ${places.join(" ")}`)
    .trim()
    .split("\n");
  return Object.fromEntries(lines.map((line) => line.split("=")).map(([name = "", mode = ""]) => [name, mode]));
}

/** Every argument list that is seen in the system, looked at again and again. */
function watchArguments(root: string, into: Set<string>, signal: AbortSignal): void {
  const timer = setInterval(() => {
    for (const pid of fs.readdirSync(path.join(root, "proc")).filter((name) => /^\d+$/.test(name)))
      into.add(readOrEmpty(path.join(root, "proc", pid, "cmdline")));
  }, LOOK_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}

function exposing(node: Installed, argvs: ReadonlySet<string>): void {
  const { system, fileOf, code } = node;
  const credential = fs.readFileSync(fileOf(`${ROOT}/node/credential`), "utf8").trim();
  const secrets = [code, credential].flatMap((secret) => [
    secret,
    secret.slice(4, 12),
    Buffer.from(secret).toString("base64").slice(0, 16),
  ]);
  assert.ok([...argvs].some((argv) => argv.includes("enrol")) && [...argvs].some((argv) => argv.includes("agent")));
  const leaks = (text: string): readonly string[] => secrets.filter((secret) => text.includes(secret));
  assert.deepEqual(
    [...argvs].filter((argv) => leaks(argv).length > 0),
    [],
  );
  const shown = system.run(["systemctl", "show", UNIT, "holdfast-launch.socket"], { as: "nobody" });
  assert.match(shown.stdout, /ExecStart=/);
  assert.deepEqual(leaks(shown.stdout), []);
  const journal = node.journal();
  assert.match(system.property(UNIT, "EnvironmentFiles"), /agent\.env/, "by which it tells as much as it can");
  assert.deepEqual(leaks(journal), []);
  const places = ["/etc", "/run", "/tmp", "/var/lib", "/var/log", "/var/tmp"];
  const patterns = secrets.map((secret) => `${secret}\n`).join("");
  const found = system.run(["grep", "-rlFs", "--devices=skip", "-f", "-", ...places], {
    as: "nobody",
    input: patterns,
  });
  assert.equal(found.stdout, "");
  // The search finds what it should where it may look.
  assert.match(system.run(["grep", "-rlFs", "-f", "-", ROOT], { input: patterns }).stdout, /credential/);
}

async function refusing(node: Installed): Promise<void> {
  const { system, world, nodeId } = node;
  const pid = node.mainPid();
  await world.admin.call("nodeRetire", { params: { nodeId } });
  await until("the agent has ended", () => !node.isThere(pid), SLOW);
  await until("the unit is down", () => system.property(UNIT, "ActiveState") === "failed", SLOW);
  assert.equal(system.property(UNIT, "ExecMainStatus"), "78");
  assert.equal(node.journal().split('"the controller refuses this node"').length, 2, "one line");
  // A supervisor that starts it all the same reaches nobody: the controller may be away.
  await world.stopController();
  system.run(["systemctl", "reset-failed", UNIT]);
  system.run(["systemctl", "start", UNIT]);
  await until("it is down again", () => system.property(UNIT, "ActiveState") === "failed", SLOW);
  assert.equal(system.property(UNIT, "ExecMainStatus"), "78");
  assert.match(node.journal(), /needs re-pairing: [^\n]*not asked again for ten minutes/);
  assert.ok(fs.existsSync(node.fileOf(`${ROOT}/node/credential`)), "nothing deletes the key");
}
