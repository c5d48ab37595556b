// SPDX-License-Identifier: Apache-2.0
// Nothing of a job outlives its launch, and nothing but a proved shim is ever signalled.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { describeEnding, type Launch, type Launcher, pathsIn } from "../../src/launcher/launcher.ts";
import { identityOf, readProcessStat } from "../../src/std/process.ts";
import { endingOf, eventually, lineFrom, makeRoot, openLauncher, prepare, run, start, removeRoot } from "./kit.ts";

let root = "";
let launcher: Launcher;
before(async () => {
  root = await makeRoot();
  launcher = await openLauncher(root);
});
after(() => removeRoot(root));

/** Whether the pid names a running process, not a zombie. */
function runs(pid: string): boolean {
  const state = readProcessStat(Number(pid))?.state;
  return state !== undefined && state !== "Z" && state !== "X";
}

const stdoutOf = (launch: Launch): string => pathsIn(launch.directory).stdout;

test("stops a job by SIGTERM within the grace and says so", async () => {
  const launch = await start(launcher, [
    "sh",
    "-c",
    "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.02; done",
  ]);
  await lineFrom(stdoutOf(launch));
  const stopped = await launcher.stop(launch);
  assert(stopped.kind === "stopped" && stopped.exit.kind === "exited");
  assert.deepEqual([stopped.isForced, stopped.exit.code, stopped.exit.stopAsked], [false, 3, true]);
  assert.match(await fs.readFile(stdoutOf(launch), "utf8"), /bye/);
});

test("kills a job that ignores SIGTERM, with its whole family, and says that it was forced", async () => {
  const script =
    "trap '' TERM; setsid sh -c 'echo $$ > escaped; exec sleep 600' & echo up; while :; do sleep 0.02; done";
  const launch = await start(launcher, ["sh", "-c", script]);
  await lineFrom(stdoutOf(launch));
  const escaped = await lineFrom(path.join(pathsIn(launch.directory).work, "escaped"));
  const stopped = await launcher.stop(launch, { graceMs: 100 });
  assert(stopped.kind === "stopped" && stopped.exit.kind === "signalled");
  assert.deepEqual([stopped.isForced, stopped.exit.signal], [true, 9]);
  assert.equal(runs(escaped), false);
});

test("stops a job that is stopped by SIGSTOP", async () => {
  const launch = await start(launcher, ["sh", "-c", "trap 'exit 4' TERM; echo up; kill -STOP $$; sleep 600"]);
  await lineFrom(stdoutOf(launch));
  const stopped = await launcher.stop(launch);
  assert(stopped.kind === "stopped" && stopped.exit.kind === "exited" && stopped.exit.code === 4);
});

test("a stop before the gate ends the launch unstarted; after the end it changes nothing", async () => {
  const launch = await prepare(launcher, ["true"]);
  const stopped = await launcher.stop(launch);
  assert(stopped.kind === "stopped" && stopped.exit.kind === "not-started");
  const { launch: done, ending } = await run(launcher, ["true"]);
  assert.deepEqual(await launcher.stop(done), { kind: "already-ended", exit: ending });
});

test("ends descendants that left the group and the session once the leader ended, and counts them", async () => {
  const script =
    "for i in 1 2 3; do setsid sh -c 'echo $$ > pid'$i'; exec sleep 600' & done; until [ -s pid1 ] && [ -s pid2 ] && [ -s pid3 ]; do sleep 0.01; done; cat pid1 pid2 pid3";
  const { ending, stdout } = await run(launcher, ["sh", "-c", script]);
  assert(ending.kind === "exited" && ending.code === 0);
  assert.equal(ending.descendants, 3);
  const pids = stdout.trim().split("\n");
  assert.equal(pids.length, 3);
  assert.deepEqual(pids.map(runs), [false, false, false]);
});

test("ends a tree of 100 processes in as many sessions, parents before children", async () => {
  const script =
    'n=$1; echo $$ >> "$2/all"; [ $n -gt 0 ] && setsid sh "$0" $((n-1)) "$2" & [ $n -eq 0 ] && echo deep > "$2/deep"; exec sleep 600';
  const file = path.join(root, "chain.sh");
  await fs.writeFile(file, script);
  const folder = await fs.mkdtemp(path.join(root, "chain-"));
  const outer = `sh "$0" 99 "$1" & until [ -e "$1/deep" ]; do sleep 0.01; done`;
  const { ending } = await run(launcher, ["sh", "-c", outer, file, folder]);
  const pids = (await fs.readFile(path.join(folder, "all"), "utf8")).trim().split("\n");
  assert.equal(pids.length, 100);
  assert(ending.kind === "exited" && ending.descendants >= 99);
  assert.deepEqual(pids.filter(runs), []);
});

test("reaps orphans while the job runs", async () => {
  const launch = await start(launcher, ["sh", "-c", "(sh -c 'echo $$ > orphan' &) ; echo up; exec sleep 600"]);
  const orphan = await lineFrom(path.join(pathsIn(launch.directory).work, "orphan"));
  await eventually("the orphan reaped", async () => (readProcessStat(Number(orphan)) === undefined ? true : undefined));
  await launcher.stop(launch);
});

test("a shim killed by SIGKILL takes its job along, and the ending is lost, not invented", async () => {
  const launch = await start(launcher, ["sh", "-c", "echo $$; exec sleep 600"]);
  const job = await lineFrom(stdoutOf(launch));
  process.kill(launch.identity.pid, "SIGKILL");
  // By the kernel, before anyone looks.
  await eventually("the job gone", async () => (runs(job) ? undefined : true));
  assert.deepEqual(await endingOf(launcher, launch), { kind: "lost" });
  const adopted = await launcher.adopt(launch.launchId);
  assert(adopted.kind === "interrupted" && adopted.reason === "gone");
  // Who is dead already is stopped.
  assert.deepEqual(await launcher.stop(launch), { kind: "gone", reason: "gone" });
});

test("shim and job ignore the death of the agent's terminal: SIGHUP and SIGINT to the shim change nothing", async () => {
  const go = path.join(root, "hup-go");
  const launch = await start(launcher, ["sh", "-c", 'echo up; until [ -e "$0" ]; do sleep 0.02; done', go]);
  await lineFrom(stdoutOf(launch));
  process.kill(launch.identity.pid, "SIGHUP");
  process.kill(launch.identity.pid, "SIGINT");
  await fs.writeFile(go, "");
  assert.equal(describeEnding(await endingOf(launcher, launch)), "exited with code 0");
});

test("does not signal a process of another boot, another start time, or another inode", async () => {
  await using stack = new AsyncDisposableStack();
  const bystander = spawn("sleep", ["600"], { stdio: "ignore" });
  stack.defer(() => void bystander.kill("SIGKILL"));
  assert(bystander.pid !== undefined);
  const identity = identityOf(bystander.pid);
  assert(identity !== undefined);
  const { launch } = await run(launcher, ["true"]);
  await fs.rm(path.join(launch.directory, "exit"));
  const stop = (changed: object) => launcher.stop({ ...launch, identity: { ...identity, ...changed } });
  assert.deepEqual(await stop({ bootId: "00000000-0000-0000-0000-000000000000" }), {
    kind: "gone",
    reason: "other-boot",
  });
  assert.deepEqual(await stop({ startTicks: String(BigInt(identity.startTicks) - 1n) }), {
    kind: "gone",
    reason: "reused",
  });
  if (identity.pidfdInode !== undefined)
    assert.deepEqual(await stop({ pidfdInode: "1" }), { kind: "gone", reason: "reused" });
  assert.deepEqual(await stop({ pid: process.pid }), { kind: "gone", reason: "reused" });
  assert.deepEqual(await stop({ pid: 1 }), { kind: "refused", reason: "legacy" });
  assert.equal(runs(String(bystander.pid)), true);
});

test("a launch of another boot is interrupted, also when its pid runs again", async () => {
  const { launch } = await run(launcher, ["true"]);
  await fs.rm(path.join(launch.directory, "exit"));
  const other = { version: 1, ...launch.identity, pid: process.pid, bootId: "00000000-0000-0000-0000-000000000000" };
  await fs.writeFile(path.join(launch.directory, "identity"), JSON.stringify(other));
  const adopted = await launcher.adopt(launch.launchId);
  assert(adopted.kind === "interrupted" && adopted.reason === "other-boot");
});

test("the shim's own word about itself is what the kernel says", async () => {
  const launch = await prepare(launcher, ["true"]);
  assert.deepEqual(launch.identity, identityOf(launch.identity.pid));
  await launch.abandon();
});
