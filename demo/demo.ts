// SPDX-License-Identifier: Apache-2.0
// Shows the promises one after the other on a real fleet, a printed line each. Every line is a check: the first that does not
// hold ends the run.

import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { createClient } from "../src/client/client.ts";
import { until } from "../tests/kit/until.ts";
import { SecretWatch } from "./secret-watch.ts";
import { type DemoNode, DemoWorld } from "./world.ts";

const WENT_BACK: ReadonlySet<string> = new Set(["returned", "expired"]);

type Say = (promise: string, text: string) => void;
type Shown = { readonly world: DemoWorld; readonly say: Say };

const TIB = 2 ** 40;

/** One run; throws when a promise does not hold. */
export async function demonstrate(suffix: string, say: Say): Promise<void> {
  const world = await DemoWorld.start(suffix);
  const watch = new SecretWatch(world);
  let left: readonly string[] = [];
  try {
    const shown = { world, say };
    const [anna, annasAgent] = await onlineByHeartbeat(shown);
    const berta = await world.enrol("berta");
    const bertasAgent = world.agent(berta, "--on-stop", "release");
    await world.online(berta);
    say("  ", `two nodes, each under its own account: ${anna.account.name}, ${berta.account.name}`);
    await claimedOnce(shown);
    await lateCompletion(
      shown,
      new Map([
        [anna, annasAgent],
        [berta, bertasAgent],
      ]),
    );
    await powerCut(shown);
    await forgedOrganisation(shown, anna);
    await tooSmallAndSlow(shown);
    await cleanStop(shown);
    watch.stop();
    assert.deepEqual(watch.found(), []);
    say(
      "P12",
      `${world.secrets.size} secrets, ${watch.looks} looks at all arguments, all files that others may read and all logs: 0 found`,
    );
  } finally {
    watch.stop();
    left = await world.end();
  }
  assert.deepEqual(left, [], "something was left running");
  say("  ", "no process is left, no file, no account");
}

async function onlineByHeartbeat({ world, say }: Shown): Promise<readonly [DemoNode, ChildProcess]> {
  const anna = await world.enrol("anna");
  const params = { nodeId: anna.nodeId };
  assert.equal((await world.admin.call("nodeShow", { params })).online, false);
  const job = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await until("the job is blocked", async () => (await show(world, job.id)).blocked);
  const agent = world.agent(anna, "--on-stop", "release");
  await world.online(anna);
  await ended(world, job.id, "succeeded");
  say(
    "P4",
    `${anna.name} was paired and not online, and its job blocked; its first heartbeat made it online and freed the job`,
  );
  return [anna, agent];
}

async function claimedOnce({ world, say }: Shown): Promise<void> {
  const jobs = await Promise.all(
    Array.from({ length: 40 }, () => world.admin.call("jobSubmit", { body: { command: ["sleep", "0.2"] } })),
  );
  let claims = 0;
  const nodes = new Set<string | null>();
  for (const { id } of jobs) {
    nodes.add((await ended(world, id, "succeeded")).nodeName);
    const claimed = (await events(world, id)).filter(({ kind }) => kind === "claimed");
    assert.equal(claimed.length, 1, `${id} was claimed ${claimed.length} times`);
    claims += claimed.length;
  }
  say("P1", `40 jobs, ${nodes.size} nodes that claim at once: ${claims} claimed events, one for each job`);
}

async function powerCut({ world, say }: Shown): Promise<void> {
  const clara = await world.enrol("clara");
  const doomed = world.agent(clara, "--die-after-claim");
  await world.online(clara);
  const exit = new Promise((resolve) => doomed.once("exit", resolve));
  const body = { command: ["echo", "after the power cut"], requires: { nodeId: clara.nodeId } };
  const job = await world.admin.call("jobSubmit", { body });
  assert.equal(await exit, 137);
  await until("the job went back", async () => (await events(world, job.id)).some(({ kind }) => WENT_BACK.has(kind)));
  world.agent(clara, "--on-stop", "release");
  const done = await ended(world, job.id, "succeeded");
  const kinds = (await events(world, job.id)).map(({ kind }) => kind);
  assert.equal(kinds.filter((kind) => kind === "started").length, 1);
  say("P2", `the agent died with exit code 137 between claim and start: ${kinds.join(" → ")}, attempt ${done.attempt}`);
}

/** A node in a tunnel: its agent stands still until its lease is history, and then tells how the job ended. */
async function lateCompletion({ world, say }: Shown, nodes: ReadonlyMap<DemoNode, ChildProcess>): Promise<void> {
  const job = await world.admin.call("jobSubmit", { body: { command: ["sleep", "600"], ...marked(world) } });
  const running = async (not: string | null) =>
    until("it runs", async () => {
      const seen = await show(world, job.id);
      return seen.state === "running" && seen.nodeId !== not ? seen : undefined;
    });
  const first = await running(null);
  const [node, agent] = [...nodes].find(([{ nodeId }]) => nodeId === first.nodeId) ?? assert.fail("a node of ours");
  const { sessionId } = await sessionOf(world, node);
  agent.kill("SIGSTOP");
  await running(first.nodeId);
  const before = JSON.stringify(await show(world, job.id));
  const late = createClient({ baseUrl: world.url, credential: credentialOf(world, node) });
  const times = { startedAt: null, endedAt: null };
  const ending = { jobId: job.id, epoch: first.epoch, outcome: { kind: "exited", exitCode: 0 }, ...times } as const;
  const body = { sessionId, ending: { ...ending, stopped: null, message: null, result: { late: true } } };
  const { verdict } = await late.call("nodeEnding", { body });
  assert.equal(verdict, "stale_epoch");
  assert.equal(JSON.stringify(await show(world, job.id)), before);
  agent.kill("SIGCONT");
  await world.online(node);
  await until("the old attempt is stopped", () => sleepers(world) === 1);
  await world.admin.call("jobCancel", { params: { jobId: job.id } });
  await ended(world, job.id, "cancelled");
  say(
    "P3",
    `${node.name} stood still until its lease was gone and another node ran the job; its late ending: ${verdict}, and the job is the same, byte for byte`,
  );
}

function credentialOf(world: DemoWorld, node: DemoNode): string {
  return world.secrets.get(`the credential of ${node.name}`) ?? assert.fail("no credential");
}

async function sessionOf(world: DemoWorld, node: DemoNode): Promise<{ sessionId: string }> {
  const { session } = await world.admin.call("nodeShow", { params: { nodeId: node.nodeId } });
  assert.ok(session);
  return { sessionId: session.id };
}

async function forgedOrganisation({ world, say }: Shown, anna: DemoNode): Promise<void> {
  const node = createClient({ baseUrl: world.url, credential: credentialOf(world, anna) });
  await assert.rejects(node.call("jobList", {}), { code: "forbidden" });
  const forged = { command: ["true"], organisationId: `org_${"0".repeat(26)}` };
  await assert.rejects(world.admin.call("jobSubmit", { body: forged }), { code: "invalid_request" });
  say(
    "P5",
    "a node's credential reaches no route of people; an organisation in a body is refused: it has nothing to attach to",
  );
}

async function tooSmallAndSlow({ world, say }: Shown): Promise<void> {
  const big = await world.admin.call("jobSubmit", { body: { command: ["true"], requires: { memoryBytes: 64 * TIB } } });
  const blocked = await until("it is blocked", async () => (await show(world, big.id)).blocked);
  assert.match(blocked, /too small/);
  const slow = await world.admin.call("jobSubmit", {
    body: { command: ["true"], requires: { needFullBytes: 2 ** 20 } },
  });
  await ended(world, slow.id, "succeeded");
  await world.admin.call("jobCancel", { params: { jobId: big.id } });
  say("P6", `too small is blocked and says so (${blocked}); a GPU job that fits on the slow path ran there`);
}

async function cleanStop({ world, say }: Shown): Promise<void> {
  const dora = await world.enrol("dora");
  const agent = world.agent(dora, "--on-stop", "release");
  await world.online(dora);
  const body = { command: ["sleep", "600"], requires: { nodeId: dora.nodeId }, ...marked(world) };
  const job = await world.admin.call("jobSubmit", { body });
  await until("it runs", async () => (await show(world, job.id)).state === "running");
  const exit = new Promise((resolve) => agent.once("exit", resolve));
  fs.writeFileSync(path.join(dora.root, "node/stop"), "");
  assert.equal(await exit, 0);
  const after = await show(world, job.id);
  assert.deepEqual([after.state, after.attempt], ["queued", 0]);
  assert.equal(sleepers(world), 0);
  await world.admin.call("jobCancel", { params: { jobId: job.id } });
  say(
    "P11",
    "a stop in the middle of a long job: the agent ended with 0, the job is back in the queue with no attempt used, its process is gone",
  );
}

/** A job starts with a cleared environment: this is how its process is known to be of this run. */
const marked = (world: DemoWorld) => ({ environment: { DEMO_RUN: world.suffix } });

/** The jobs' own processes, without their shims. */
const sleepers = (world: DemoWorld): number => world.alive().filter((line) => /^\d+ sleep 600$/.test(line)).length;

const show = (world: DemoWorld, jobId: string) => world.admin.call("jobShow", { params: { jobId } });

async function events(world: DemoWorld, jobId: string) {
  return (await world.admin.call("jobEvents", { params: { jobId } })).events;
}

function ended(world: DemoWorld, jobId: string, state: string) {
  return until(
    `${jobId} is ${state}`,
    async () => {
      const job = await show(world, jobId);
      return job.state === state ? job : undefined;
    },
    { withinMs: 60_000 },
  );
}
