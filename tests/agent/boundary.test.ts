// SPDX-License-Identifier: Apache-2.0
// The boundary in a running node: what was started is entered before its gate, an untrusted node refuses every job and says
// why everywhere, and every attempt of an earlier life gets a verdict.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { createHome } from "../kit/command.ts";
import { until } from "../kit/until.ts";
import { createWorld, type World } from "../kit/world.ts";
import { createMachine, isRunning, jobState, pidOf, startNode, waitingCommand } from "./kit.ts";

const slotOf = (root: string): string => path.join(root, "node", "locker", "boundary");

async function show(t: Parameters<typeof createHome>[0], root: string, ...args: readonly string[]) {
  const { code, stdout, stderr } = await createHome(t).run(["boundary", ...args, "--root", root]);
  return { code, text: stdout + stderr };
}

const boundaryOf = async (world: World, nodeId: string) =>
  (await world.admin.call("nodeShow", { params: { nodeId } })).boundary;

async function runOne(world: World): Promise<void> {
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await jobState(world, id, "succeeded");
}

/** Once the controller knows that the node distrusts itself. */
async function whyDistrusted(world: World, nodeId: string): Promise<string> {
  const told = await until("the node distrusts itself", async () => {
    const boundary = await boundaryOf(world, nodeId);
    return boundary?.state === "untrusted" ? boundary : undefined;
  });
  return told.why ?? "";
}

test("P9: a running attempt stands in the record before it runs, and leaves when its ending is acknowledged", async (t) => {
  const world = await createWorld(t);
  const { machine, nodeId } = await startNode(t, world, "one");
  const go = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand(go) } });
  const pid = await pidOf(world, id);
  const seen = await show(t, machine.root, "show");
  assert.match(seen.text, new RegExp(`${id} +1 +\\d+ +released`));
  assert.match(seen.text, /boundary +trusted/);
  fs.writeFileSync(go, "");
  await jobState(world, id, "succeeded");
  await until("the entry has left", async () => !(await show(t, machine.root, "show")).text.includes(id));
  assert.ok(!isRunning(pid));
  const told = await until("the controller knows", async () => (await boundaryOf(world, nodeId)) ?? undefined);
  assert.equal(told.state, "trusted");
});

test("P9: with a damaged slot the node refuses every job across restarts and says why everywhere, until it is reset", async (t) => {
  const world = await createWorld(t);
  const { machine, agent, nodeId } = await startNode(t, world, "one");
  const first = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await jobState(world, first.id, "succeeded");
  agent.process.kill("SIGTERM");
  await agent.ended;
  const bytes = fs.readFileSync(slotOf(machine.root));
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  fs.writeFileSync(slotOf(machine.root), bytes);

  const verify = await show(t, machine.root, "verify");
  assert.deepEqual(
    [verify.code, /^untrusted: .*locker is damaged: .*the disk may be failing/.test(verify.text)],
    [1, true],
    verify.text,
  );
  for (let start = 0; start < 2; start++) {
    const again = machine.start();
    const told = await until("the controller knows", async () => {
      const boundary = await boundaryOf(world, nodeId);
      return boundary?.state === "untrusted" ? boundary : undefined;
    });
    assert.match(told.why ?? "", /damaged/);
    const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
    const blocked = await until(
      "the job says why it waits",
      async () => (await world.admin.call("jobShow", { params: { jobId: id } })).blocked,
    );
    assert.match(blocked, /one \(refuses every job: .*damaged/);
    const { attention } = await world.admin.call("overview", {});
    assert.ok(attention.some(({ level, text }) => level === "error" && /node one refuses every job/.test(text)));
    again.process.kill("SIGTERM");
    await again.ended;
  }
  assert.equal((await show(t, machine.root, "reset")).code, 64);
  assert.equal((await show(t, machine.root, "reset", "--i-know-jobs-may-repeat")).code, 0);
  machine.start();
  const last = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await jobState(world, last.id, "succeeded");
});

test("P10: a locker that went back in time is found by what the node itself once told the controller", async (t) => {
  const world = await createWorld(t);
  const { machine, agent, nodeId } = await startNode(t, world, "one");
  await runOne(world);
  const old = fs.readFileSync(slotOf(machine.root));
  await runOne(world);
  await until(
    "the controller has newer evidence",
    async () => Number((await boundaryOf(world, nodeId))?.sequence ?? 0) >= 4,
  );
  agent.process.kill("SIGTERM");
  await agent.ended;
  fs.writeFileSync(slotOf(machine.root), old);
  machine.start();
  assert.match(await whyDistrusted(world, nodeId), /went back in time/);
});

test("P10: slots that were restored to before an operator's reset are not trusted", async (t) => {
  const world = await createWorld(t);
  const { machine, agent, nodeId } = await startNode(t, world, "one");
  await runOne(world);
  // What was never told cannot be told apart.
  await until("the controller knows its lineage", async () => (await boundaryOf(world, nodeId))?.sequence ?? undefined);
  agent.process.kill("SIGTERM");
  await agent.ended;
  const old = fs.readFileSync(slotOf(machine.root));
  assert.equal((await show(t, machine.root, "reset", "--i-know-jobs-may-repeat")).code, 0);
  const again = machine.start();
  await runOne(world);
  again.process.kill("SIGTERM");
  await again.ended;
  fs.writeFileSync(slotOf(machine.root), old);
  machine.start();
  assert.match(await whyDistrusted(world, nodeId), /from before a reset/);
});

/** A job whose agent is killed, and whose launch directory is harmed while it runs. */
async function harmed(t: TestContext, harm: (directory: string) => void) {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one");
  const go = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", {
    body: { command: waitingCommand(go), retry: { maxAttempts: 1, onFailure: false } },
  });
  const pid = await pidOf(world, id);
  agent.process.kill("SIGKILL");
  await agent.ended;
  harm(path.join(machine.root, "node", "launches", machine.launches()[0] ?? ""));
  const next = machine.start();
  await until("the next agent has found it", () => /whose launch directory is lost/.test(next.stderr()));
  return { world, machine, id, pid, go };
}

const HARMS: readonly (readonly [string, "dead" | "succeeded", (directory: string) => void])[] = [
  ["is gone", "dead", (directory) => fs.rmSync(directory, { recursive: true })],
  // Its exit file tells how it ended all the same.
  ["has a torn identity", "succeeded", (directory) => fs.writeFileSync(path.join(directory, "identity"), "{")],
  ["has lost its spec", "succeeded", (directory) => fs.rmSync(path.join(directory, "spec.json"))],
];

for (const [name, end, harm] of HARMS) {
  test(`P9: an attempt that runs while its launch directory ${name} is called ${end} only once it has ended`, async (t) => {
    const { world, machine, id, pid, go } = await harmed(t, harm);
    const { startedAt } = await world.admin.call("jobShow", { params: { jobId: id } });
    assert.notEqual(startedAt, null);
    assert.match((await show(t, machine.root, "show")).text, new RegExp(`${id} +1 +\\d+ +released`));
    assert.ok(isRunning(pid));
    fs.writeFileSync(go, "");
    await jobState(world, id, end);
    assert.ok(!isRunning(pid));
    await until("the record is empty again", async () => !(await show(t, machine.root, "show")).text.includes(id));
  });
}

test("an attempt whose launch directory is gone while it runs can be stopped", async (t) => {
  const { world, id, pid } = await harmed(t, (directory) => fs.rmSync(directory, { recursive: true }));
  await world.admin.call("jobCancel", { params: { jobId: id } });
  await until("it is stopped", () => !isRunning(pid));
  await jobState(world, id, "cancelled");
});

test("P11: an attempt whose launch directory is gone is told as interrupted, not forgotten", async (t) => {
  const world = await createWorld(t);
  const { machine, agent } = await startNode(t, world, "one");
  const { id } = await world.admin.call("jobSubmit", {
    body: { command: waitingCommand("/never"), retry: { maxAttempts: 1, onFailure: false } },
  });
  const pid = await pidOf(world, id);
  agent.process.kill("SIGKILL");
  await agent.ended;
  const [launch] = machine.launches();
  const directory = path.join(machine.root, "node", "launches", launch ?? "");
  const shim = JSON.parse(fs.readFileSync(path.join(directory, "identity"), "utf8")) as { pid: number };
  // The only witness first: it takes the job along and writes no exit file.
  process.kill(shim.pid, "SIGKILL");
  await until("shim and job are gone", () => !isRunning(shim.pid) && !isRunning(pid));
  fs.rmSync(directory, { recursive: true, force: true });
  machine.start();
  const job = await jobState(world, id, "dead");
  assert.match(
    (await world.admin.call("jobShow", { params: { jobId: id } })).message ?? "",
    /launch directory is gone/,
  );
  assert.equal(job.attempt, 1);
  await until("the record is empty again", async () => !(await show(t, machine.root, "show")).text.includes(id));
});

test("a locker on two disks survives a blank one, and a slot that is left out is refused", async (t) => {
  const world = await createWorld(t);
  const machine = createMachine(t);
  const slots = ["a", "b"].map((name) => path.join(machine.root, name));
  const { code } = await world.admin.call("pairingCreate", { body: { name: "two" } });
  const agent = machine.start({ join: world.url, lockerSlots: slots }, { HOLDFAST_PAIRING_CODE: code });
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await jobState(world, id, "succeeded");
  agent.process.kill("SIGTERM");
  await agent.ended;
  fs.rmSync(path.join(slots[1] ?? "", "boundary"));
  const lost = machine.start({ lockerSlots: slots.slice(0, 1) });
  assert.equal(await lost.ended, 78);
  assert.match(lost.stderr(), /also has the slot .*\/b/);
  machine.start();
  const next = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await jobState(world, next.id, "succeeded");
  // The last store may be under way.
  await until("both slots hold the same", () => {
    const [one, other] = slots.map((slot) => fs.readFileSync(path.join(slot, "boundary")));
    return one !== undefined && other !== undefined && one.equals(other);
  });
});

test("P10: a slot whose disk is not mounted is never made anew on the disk below: stores fail and say where", async (t) => {
  const world = await createWorld(t);
  const machine = createMachine(t);
  const slots = ["a", "b"].map((name) => path.join(machine.root, name));
  const { code } = await world.admin.call("pairingCreate", { body: { name: "two" } });
  const agent = machine.start({ join: world.url, lockerSlots: slots }, { HOLDFAST_PAIRING_CODE: code });
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const { nodeId } = await jobState(world, id, "succeeded");
  agent.process.kill("SIGTERM");
  await agent.ended;
  const away = path.join(machine.root, "away");
  fs.renameSync(slots[1] ?? "", away);
  const blind = machine.start();
  const next = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  const why = await until("the node says why it refuses", async () => (await boundaryOf(world, nodeId ?? ""))?.why);
  assert.match(why, /\/b\/boundary could not be written \(ENOENT\): is its disk mounted\?/);
  assert.ok(!fs.existsSync(slots[1] ?? ""));
  blind.process.kill("SIGTERM");
  await blind.ended;
  fs.renameSync(away, slots[1] ?? "");
  machine.start();
  await jobState(world, next.id, "succeeded");
});

test("an attempt that ended while nobody held its lease leaves the record, and the same node runs the job's next attempt", async (t) => {
  const world = await createWorld(t, { leaseMs: 500 });
  const { machine, agent } = await startNode(t, world, "one");
  const go = path.join(machine.root, "go");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand(go) } });
  const pid = await pidOf(world, id);
  agent.process.kill("SIGKILL");
  await agent.ended;
  fs.writeFileSync(go, "");
  await until("the job has ended", () => !isRunning(pid));
  await until("its lease has run out", async () => {
    const { state } = await world.admin.call("jobShow", { params: { jobId: id } });
    return state === "queued" || state === "scheduled";
  });
  machine.start();
  assert.equal((await jobState(world, id, "succeeded")).attempt, 2);
});
