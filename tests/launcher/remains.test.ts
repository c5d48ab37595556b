// SPDX-License-Identifier: Apache-2.0
// A shim killed by SIGKILL cannot clean up: what its job left is found from outside, is never called interrupted while it runs,
// and is ended by whoever watches or stops the launch. A stranger is never signalled.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Launch, Launcher, PreparedLaunch } from "../../src/launcher/launcher.ts";
import { pathsIn } from "../../src/launcher/launcher.ts";
import { findSurvivors } from "../../src/launcher/survivors.ts";
import { identityOf, isAlive, readProcessStat } from "../../src/std/process.ts";
import { endingOf, eventually, lineFrom, makeRoot, openLauncher, start, removeRoot } from "./kit.ts";

let root = "";
let launcher: Launcher;
before(async () => {
  root = await makeRoot();
  launcher = await openLauncher(root);
});
after(() => removeRoot(root));

/** A job whose shim is killed, and the pid of a grandchild that lives on. `escape` runs it elsewhere. */
async function orphaned(escape: string): Promise<{ readonly launch: PreparedLaunch; readonly grandchild: number }> {
  const script = `${escape} sh -c 'echo $$ > "$0"; exec sleep 600' "$0" & wait`;
  const file = path.join(root, `grandchild-${Math.random()}`);
  const launch = await start(launcher, ["sh", "-c", script, file]);
  const grandchild = Number(await lineFrom(file));
  process.kill(launch.identity.pid, "SIGKILL");
  await eventually("the shim gone", async () => (isAlive(launch.identity) ? undefined : true));
  return { launch, grandchild };
}

/** Not a zombie, which init has yet to reap. */
function runs(pid: number): boolean {
  return !["Z", "X", undefined].includes(readProcessStat(pid)?.state);
}

/** As a restarted agent sees it: without the cgroup that this one happens to have. */
const withoutCgroup = (launch: Launch): Launch => ({ ...launch, cgroup: undefined });

test("a killed shim with a surviving grandchild is not interrupted while that lives, and says what survives", async () => {
  const { launch, grandchild } = await orphaned("");
  const adopted = await launcher.adopt(launch.launchId);
  assert(adopted.kind === "remains");
  assert.deepEqual(
    adopted.survivors.map(({ pid, name, isProved }) => [pid, name, isProved]),
    [[grandchild, "sleep", true]],
  );
  assert.deepEqual(await launcher.remove(launch.launchId), { kind: "refused", reason: "alive" });
  assert.equal(runs(grandchild), true, "a look changes nothing");
  // Watching takes the rest along, as the shim would have.
  assert.deepEqual(await endingOf(launcher, launch), { kind: "lost" });
  assert.equal(runs(grandchild), false);
  const later = await launcher.adopt(launch.launchId);
  assert(later.kind === "interrupted" && later.reason === "gone");
});

test("a setsid escapee of a killed shim is found by its mark, and a stop ends it with proof", async () => {
  const { launch, grandchild } = await orphaned("setsid");
  assert.notEqual(readProcessStat(grandchild)?.sessionId, launch.identity.pid);
  assert.deepEqual(
    findSurvivors(withoutCgroup(launch)).map(({ pid }) => pid),
    [grandchild],
  );
  assert.deepEqual(await launcher.stop(withoutCgroup(launch), { graceMs: 0 }), { kind: "gone", reason: "gone" });
  assert.equal(runs(grandchild), false);
});

test("who is only in a session of that number is named, never signalled, and keeps the launch from being called interrupted", async () => {
  // Its mark is gone and there is no cgroup: this may as well be a stranger whose session got the number later.
  const { launch, grandchild } = await orphaned("env -u HOLDFAST_LAUNCH");
  const survivors = findSurvivors(withoutCgroup(launch));
  assert.deepEqual(
    survivors.map(({ pid, isProved }) => [pid, isProved]),
    [[grandchild, false]],
  );
  const stopped = await launcher.stop(withoutCgroup(launch), { graceMs: 10 });
  assert(stopped.kind === "survived");
  assert.deepEqual(
    stopped.survivors.map(({ pid, name }) => [pid, name]),
    [[grandchild, "sleep"]],
  );
  assert.equal(runs(grandchild), true);
  process.kill(grandchild, "SIGKILL");
  await eventually("it gone", async () => (runs(grandchild) ? undefined : true));
  assert.deepEqual(await launcher.stop(withoutCgroup(launch)), { kind: "gone", reason: "gone" });
});

test("a session whose number another process leads now is empty: its members are strangers", async () => {
  const stranger = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  assert(stranger.pid !== undefined);
  await using stack = new AsyncDisposableStack();
  stack.defer(() => void stranger.kill("SIGKILL"));
  const identity = identityOf(stranger.pid);
  assert(identity !== undefined);
  const earlier = { ...identity, startTicks: String(BigInt(identity.startTicks) - 5n), pidfdInode: "1" };
  assert.deepEqual(
    findSurvivors({ launchId: "attempt-job_1-1", identity: earlier, spec: undefined, cgroup: undefined }),
    [],
  );
});

test("a launch that is damaged while it runs says who still runs, and is not removed", async () => {
  const launch = await start(launcher, ["sh", "-c", "echo up; exec sleep 600"]);
  await lineFrom(pathsIn(launch.directory).stdout);
  await fs.rename(path.join(launch.directory, "spec.json"), path.join(launch.directory, "spec.lost"));
  const adopted = await launcher.adopt(launch.launchId);
  assert(adopted.kind === "damaged");
  assert.deepEqual(adopted.survivors.map(({ name }) => name).sort(), ["holdfast-shim", "sleep"]);
  assert.deepEqual(await launcher.remove(launch.launchId), { kind: "refused", reason: "alive" });
  await launcher.stop(launch);
});
