// SPDX-License-Identifier: Apache-2.0
// An agent's jobs from claim to end, with real processes, a real controller and a real database.

import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { until } from "../kit/until.ts";
import { createWorld } from "../kit/world.ts";
import { isRunning, jobState, outputOf, pidOf, startNode, waitingCommand } from "./kit.ts";

test("a job gets its input and environment, and its output and result come back", async (t) => {
  const world = await createWorld(t);
  const { machine } = await startNode(t, world, "one");
  const script =
    'cat "$HOLDFAST_INPUT"; echo; echo "$COLOUR $HOLDFAST_JOB_ID $HOLDFAST_ATTEMPT $HOLDFAST_PATH $HOLDFAST_GPUS."; echo wrong >&2; echo \'{"sum": 3}\' > "$HOLDFAST_RESULT"';
  const { id } = await world.admin.call("jobSubmit", {
    body: {
      command: ["sh", "-c", script],
      input: { a: [1, "ü"] },
      environment: { COLOUR: "red" },
      requires: { memoryBytes: 1 },
    },
  });
  await jobState(world, id, "succeeded");
  const job = await world.admin.call("jobShow", { params: { jobId: id } });
  assert.deepEqual([job.exitCode, job.attempt, job.result, job.message], [0, 1, { sum: 3 }, null]);
  assert.equal(await outputOf(world, id), `{"a":[1,"ü"]}\nred ${id} 1 cpu .\n`);
  assert.equal(await outputOf(world, id, "stderr"), "wrong\n");
  await until("the launch directory is removed", () => machine.launches().length === 0);
  await world.assertLedgers();
});

test("forty jobs of a moment each run on two slots, each once, started before ended", async (t) => {
  const world = await createWorld(t);
  await startNode(t, world, "one");
  const ids: string[] = [];
  for (let job = 0; job < 40; job++)
    ids.push((await world.admin.call("jobSubmit", { body: { command: ["true"] } })).id);
  for (const id of ids) await jobState(world, id, "succeeded");
  const rows = await world.sql<{ kinds: string[] }>(
    "select array_agg(kind order by seq) as kinds from app.job_event group by job_id",
  );
  assert.ok(
    rows.every(({ kinds }) => kinds.join() === "created,claimed,started,succeeded"),
    JSON.stringify(rows),
  );
  await world.assertLedgers();
});

test("a failing, a missing and a killed program each say so", async (t) => {
  const world = await createWorld(t);
  await startNode(t, world, "one", { slots: 4 });
  const submit = async (...command: string[]): Promise<string> =>
    (await world.admin.call("jobSubmit", { body: { command } })).id;
  const [three, missing, killed] = [
    await submit("sh", "-c", "exit 3"),
    await submit("/no/such/program"),
    await submit("sh", "-c", "kill -9 $$"),
  ];
  const ends = await Promise.all([three, missing, killed].map((id) => jobState(world, id, "failed")));
  assert.deepEqual(
    ends.map((job) => [job.reason, job.exitCode]),
    [
      ["exit-code", 3],
      ["exec-failed", null],
      ["signal", null],
    ],
  );
  assert.match((await world.admin.call("jobShow", { params: { jobId: missing } })).message ?? "", /ENOENT/);
});

test("a result that cannot be stored is dropped with the reason, and the job still succeeds", async (t) => {
  const world = await createWorld(t);
  await startNode(t, world, "one", { slots: 4 });
  const results = ["not json", '{"a":"\\u0000"}', "1e999", `"${"x".repeat(300 * 1024)}"`];
  for (const result of results) {
    const command = [
      "sh",
      "-c",
      'cat "$HOLDFAST_INPUT" | cut -c2- >/dev/null; printf %s "$1" > "$HOLDFAST_RESULT" || head -c 300000 /dev/zero > "$HOLDFAST_RESULT"',
      "sh",
      result.slice(0, 30_000),
    ];
    if (result.length > 30_000)
      command.splice(0, command.length, "sh", "-c", 'head -c 300000 /dev/zero | tr "\\0" x > "$HOLDFAST_RESULT"');
    const { id } = await world.admin.call("jobSubmit", { body: { command } });
    await jobState(world, id, "succeeded");
    const job = await world.admin.call("jobShow", { params: { jobId: id } });
    assert.equal(job.result, null);
    assert.match(job.message ?? "", /the result was dropped/, result.slice(0, 20));
  }
});

test("output is seen while the job runs, cut between characters, and complete at the end", async (t) => {
  const world = await createWorld(t);
  const { machine } = await startNode(t, world, "one");
  const go = path.join(machine.root, "go");
  const script = `echo first; while [ ! -e '${go}' ]; do sleep 0.02; done; i=0; while [ $i -lt 3000 ]; do echo "zeile $i äöü€😀 äöü€😀 äöü€😀 äöü€😀"; i=$((i+1)); done`;
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["sh", "-c", script] } });
  await until("the first line is seen", async () => (await outputOf(world, id)) === "first\n", { withinMs: 3000 });
  await import("node:fs/promises").then((fs) => fs.writeFile(go, ""));
  await jobState(world, id, "succeeded");
  const text = await outputOf(world, id);
  assert.equal(text.split("\n").length, 3002);
  assert.ok(!text.includes("\uFFFD"));
});

test("a cancel reaches a running job with the next renewal, and nothing of it stays", async (t) => {
  const world = await createWorld(t);
  const { machine } = await startNode(t, world, "one");
  const { id } = await world.admin.call("jobSubmit", { body: { command: waitingCommand("/never") } });
  const pid = await pidOf(world, id);
  await world.admin.call("jobCancel", { params: { jobId: id } });
  await jobState(world, id, "cancelled");
  assert.ok(!isRunning(pid));
  await until("the launch directory is removed", () => machine.launches().length === 0);
});

test("a job past its time limit is stopped, also when it ignores SIGTERM", async (t) => {
  const world = await createWorld(t);
  await startNode(t, world, "one");
  const command = ["sh", "-c", "trap '' TERM; echo pid $$; while :; do sleep 0.05; done"];
  const { id } = await world.admin.call("jobSubmit", { body: { command, timeLimitMs: 400 } });
  const pid = await pidOf(world, id);
  const job = await jobState(world, id, "failed");
  assert.equal(job.reason, "time-limit");
  assert.ok(!isRunning(pid));
});

test("a job that fills the node's disk with output is stopped, and its ending names the limit", async (t) => {
  const world = await createWorld(t);
  await startNode(t, world, "one", { outputBytesMax: 100_000 });
  const { id } = await world.admin.call("jobSubmit", {
    body: { command: ["sh", "-c", "head -c 200000 /dev/zero; exec sleep 600"] },
  });
  assert.equal((await jobState(world, id, "failed")).reason, "output-limit");
});

test("a draining node claims nothing until it is made active again", async (t) => {
  const world = await createWorld(t);
  const { nodeId, agent } = await startNode(t, world, "one");
  await world.admin.call("nodeDrain", { params: { nodeId } });
  await until("the agent knows", () => agent.stderr().includes("draining"));
  const { id } = await world.admin.call("jobSubmit", { body: { command: ["true"] } });
  await world.admin.call("nodeActivate", { params: { nodeId } });
  await jobState(world, id, "succeeded");
});
