// SPDX-License-Identifier: Apache-2.0
// Agents that are killed, stopped, cut off, doubled and retired: nothing is lost, nothing runs twice, each says why.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";
import { createMachine, isRunning, jobState, outputOf, pidOf, startNode, waitingCommand } from "./kit.ts";

test("a killed agent disturbs no job: the next one adopts the same process, and its output is whole", async (t) => {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one");
  const go = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand(go) } });
  const pid = await pidOf(world, id);
  agent.process.kill("SIGKILL");
  await agent.ended;
  assert.ok(isRunning(pid));
  const second = machine.start();
  await until("the job is adopted", () => second.stderr().includes("an attempt of an earlier agent"));
  fs.writeFileSync(go, "");
  const job = await jobState(world, id, "succeeded");
  assert.equal(job.attempt, 1);
  assert.equal(await outputOf(world, id), `pid ${pid}\nover\n`);
  await until("the launch directory is removed", () => machine.launches().length === 0);
  await world.assertLedgers();
});

test("a job that ended while no agent was there is reported with its real ending", async (t) => {
  const world = await createWorld(t, { leaseMs: 20_000 });
  const { machine, agent } = await startNode(t, world, "one");
  const go = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", {
    body: { command: ["sh", "-c", `${waitingCommand(go)[2]}; exit 7`] },
  });
  const pid = await pidOf(world, id);
  agent.process.kill("SIGKILL");
  await agent.ended;
  fs.writeFileSync(go, "");
  await until("the job has ended", () => !isRunning(pid));
  machine.start();
  const job = await jobState(world, id, "failed");
  assert.deepEqual([job.reason, job.exitCode, job.attempt], ["exit-code", 7, 1]);
  assert.equal(await outputOf(world, id), `pid ${pid}\nover\n`);
});

test("an agent that comes back after its lease went to another stops the job and never reports", async (t) => {
  const world = await createWorld(t, { leaseMs: 300 });
  const { machine, agent } = await startNode(t, world, "one");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand("/never") } });
  const pid = await pidOf(world, id);
  agent.process.kill("SIGKILL");
  await agent.ended;
  const heir = await world.node("heir");
  const lease = await until("the heir has the job", async () => (await heir.claim(1, { waitMs: 1000 }))[0]);
  await heir.start(id, lease.epoch);
  // However slow this machine is: from here on the heir holds it.
  await world.sql("update app.job set lease_until = now() + interval '1 hour' where lease_until is not null");
  machine.start();
  await until("the zombie is gone", () => !isRunning(pid) && machine.launches().length === 0);
  assert.equal(await heir.end(id, lease.epoch, { result: "heir" }), "done");
  assert.equal((await world.admin.call("jobShow", { params: { jobId: id } })).result, "heir");
});

test("SIGTERM gives running jobs back, leaves no process, and the attempt is not used", async (t) => {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand("/never") } });
  const pid = await pidOf(world, id);
  agent.process.kill("SIGTERM");
  assert.equal(await agent.ended, 0, agent.stderr());
  assert.ok(!isRunning(pid));
  assert.deepEqual(machine.launches(), []);
  const job = await world.admin.call("jobShow", { params: { jobId: id } });
  assert.ok(["queued", "scheduled"].includes(job.state), job.state);
  assert.equal(job.attempt, 0);
});

test("a stop file ends an agent that leaves its jobs, and the file is gone", async (t) => {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one", { onStop: "leave" });
  const go = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand(go) } });
  const pid = await pidOf(world, id);
  const stop = path.join(machine.root, "node", "stop");
  fs.writeFileSync(stop, "");
  assert.equal(await agent.ended, 0, agent.stderr());
  assert.ok(!fs.existsSync(stop) && isRunning(pid));
  machine.start();
  fs.writeFileSync(go, "");
  assert.equal((await jobState(world, id, "succeeded")).attempt, 1);
});

test("an agent that finishes waits for what it holds and claims nothing more", async (t) => {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one", { onStop: "finish" });
  const go = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand(go) } });
  await pidOf(world, id);
  agent.process.kill("SIGTERM");
  await until("the agent is stopping", () => agent.stderr().includes("stopping"));
  const later = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  fs.writeFileSync(go, "");
  assert.equal(await agent.ended, 0, agent.stderr());
  await jobState(world, id, "succeeded");
  assert.equal((await world.admin.call("jobShow", { params: { jobId: later.id } })).state, "queued");
});

test("the end of the lifeline ends the agent and its jobs", async (t) => {
  const world = await createWorld(t);
  const { agent } = await startNode(t, world, "one", { lifeline: true });
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand("/never") } });
  const pid = await pidOf(world, id);
  agent.process.stdin?.end();
  assert.equal(await agent.ended, 0, agent.stderr());
  assert.ok(!isRunning(pid));
});

test("a controller that is away is waited for, said once when it goes and once when it is back", async (t) => {
  const world = await createWorld(t, { leaseMs: 20_000 });
  const { machine, agent } = await startNode(t, world, "one");
  const go = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand(go) } });
  const pid = await pidOf(world, id);
  await world.stopController();
  await until("the agent has noticed", () => /cannot be reached/.test(agent.stderr()));
  fs.writeFileSync(go, "");
  await until("the job ends without the controller", () => !isRunning(pid));
  await world.startController();
  await jobState(world, id, "succeeded");
  const lines = agent.stderr().split("\n");
  assert.equal(lines.filter((line) => /cannot be reached/.test(line)).length, 1);
  assert.equal(lines.filter((line) => /answers again/.test(line)).length, 1);
});

test("an agent that dies right after a claim loses nothing: the job runs once, as its first attempt", async (t) => {
  const world = await createWorld(t, { startWithinMs: 300 });
  const { machine, agent } = await startNode(t, world, "one", { dieAfterClaim: true });
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  assert.equal(await agent.ended, 137);
  machine.start();
  assert.equal((await jobState(world, id, "succeeded")).attempt, 1);
});

test("a second agent on the same root is refused by the pid of the first", async (t) => {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one");
  const second = machine.start();
  assert.equal(await second.ended, 84);
  assert.match(second.stderr(), new RegExp(`pid ${agent.process.pid}`));
});

test("a retired node stops its jobs and ends with one line and exit code 78", async (t) => {
  const world = await createWorld(t);
  const { agent, nodeId } = await startNode(t, world, "one");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand("/never") } });
  const pid = await pidOf(world, id);
  await world.admin.call("nodeRetire", { params: { nodeId } });
  assert.equal(await agent.ended, 78, agent.stderr());
  assert.ok(!isRunning(pid));
  assert.equal(
    agent
      .stderr()
      .split("\n")
      .filter((line) => line.includes("refuses this node")).length,
    1,
  );
});

test("a copy with the same credential ends the first agent with 78, and the job stays with the process", async (t) => {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one");
  const copy = createMachine(t);
  fs.mkdirSync(path.join(copy.root, "node"), { recursive: true });
  for (const file of ["credential", "agent.json"])
    fs.copyFileSync(path.join(machine.root, "node", file), path.join(copy.root, "node", file));
  copy.start();
  assert.equal(await agent.ended, 78, agent.stderr());
});

test("secrets: an empty pipe is named, a readable credential is refused, a used code on a paired root is no fault", async (t) => {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one");
  agent.process.kill("SIGTERM");
  await agent.ended;
  const piped = machine.start({ nodeKeyStdin: true });
  piped.process.stdin?.end();
  assert.equal(await piped.ended, 78);
  assert.match(piped.stderr(), /empty pipe/);
  const again = machine.start({ join: world.url }, { HOLDFAST_PAIRING_CODE: `hfp_${"A".repeat(43)}` });
  await until("it is online with what it has", () => again.stderr().includes("online"));
  again.process.kill("SIGTERM");
  await again.ended;
  fs.chmodSync(path.join(machine.root, "node", "credential"), 0o644);
  const exposed = machine.start();
  await exposed.ended;
  assert.match(exposed.stderr(), /secret_exposed/);
});

test("a retired machine is paired anew by a new code alone", async (t) => {
  const world = await createWorld(t);
  const { machine, agent, nodeId } = await startNode(t, world, "one");
  await world.admin.call("nodeRetire", { params: { nodeId } });
  await agent.ended;
  const { code } = await world.admin.call("pairingCreate", { body: { name: "one" } });
  machine.start({ join: world.url }, { HOLDFAST_PAIRING_CODE: code });
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await jobState(world, id, "succeeded");
});

test("a machine that cannot launch gives the job back, pauses its claims, and runs it once it can", async (t) => {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one");
  const launches = path.join(machine.root, "node", "launches");
  fs.renameSync(launches, `${launches}.away`);
  fs.writeFileSync(launches, "");
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await until("the agent says so", () => agent.stderr().includes("could not be launched"));
  fs.rmSync(launches);
  fs.renameSync(`${launches}.away`, launches);
  assert.equal((await jobState(world, id, "succeeded")).attempt, 1);
  const { events } = await world.admin.call("jobEvents", { params: { jobId: id } });
  assert.ok(events.filter((event) => event.kind === "claimed").length <= 3, events.map((event) => event.kind).join());
});

test("a node that was retired while its agent was away has its jobs stopped at the next start", async (t) => {
  const world = await createWorld(t, { leaseMs: 20_000 });
  const { machine, agent, nodeId } = await startNode(t, world, "one");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand("/never") } });
  const pid = await pidOf(world, id);
  agent.process.kill("SIGKILL");
  await agent.ended;
  await world.admin.call("nodeRetire", { params: { nodeId } });
  const second = machine.start();
  assert.equal(await second.ended, 78, second.stderr());
  assert.ok(!isRunning(pid));
});

test("an agent killed in the middle of a stop: the next one finishes it and reports the reason", async (t) => {
  const world = await createWorld(t, { leaseMs: 20_000 });
  const { machine, agent } = await startNode(t, world, "one", { stopGraceMs: 60_000 });
  const command = ["sh", "-c", "trap '' TERM; echo pid $$; while :; do sleep 0.05; done"];
  const { id } = await world.admin.call("jobSubmit", { body: { command, timeLimitMs: 300 } });
  const pid = await pidOf(world, id);
  await until("the stop has begun", () => agent.stderr().includes("stopping a job"));
  agent.process.kill("SIGKILL");
  await agent.ended;
  assert.ok(isRunning(pid));
  machine.start();
  assert.equal((await jobState(world, id, "failed")).reason, "time-limit");
  assert.ok(!isRunning(pid));
});
