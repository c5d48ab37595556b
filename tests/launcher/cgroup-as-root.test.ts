// SPDX-License-Identifier: Apache-2.0
// One cgroup for each launch, on a real hierarchy of version 2: delegated to root, and not to an ordinary user.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { cgroupDirectory, createCgroup, removeCgroup } from "../../src/launcher/cgroup.ts";
import type { Launcher } from "../../src/launcher/launcher.ts";
import { isAlive, readProcessStat } from "../../src/std/process.ts";
import { endingOf, eventually, lineFrom, makeRoot, openLauncher, run, shimPath, start, removeRoot } from "./kit.ts";

const agentMain = fileURLToPath(new URL("agent-main.ts", import.meta.url));

let root = "";
let launcher: Launcher;
let mounted: string | undefined;
before(async () => {
  root = await makeRoot();
  launcher = await openLauncher(root);
  const probe = createCgroup("probe");
  if (probe.kind === "own") return removeCgroup(probe.path);
  // Some containers show the hierarchy read-only: a second mount of it is found as well.
  mounted = path.join(root, "second mount");
  await fs.mkdir(mounted);
  assert.equal(spawnSync("mount", ["-t", "cgroup2", "cgroup2", mounted]).status, 0, "root may mount");
});
after(async () => {
  if (mounted !== undefined) spawnSync("umount", ["-l", mounted]);
  await removeRoot(root);
});

const exists = (file: string): Promise<boolean> =>
  fs.stat(file).then(
    () => true,
    () => false,
  );

test("the job is born in a cgroup of its own, the shim stays outside, and it is removed with the end", async () => {
  const { launch, stdout } = await run(launcher, ["sh", "-c", "cat /proc/self/cgroup /proc/$PPID/cgroup"]);
  assert(launch.cgroup !== undefined);
  assert.equal(path.basename(launch.cgroup), `holdfast-${launch.launchId}`);
  const paths = [...stdout.matchAll(/^0::(.*)$/gm)].map((match) => match[1]);
  assert.deepEqual(paths, [launch.cgroup, path.dirname(launch.cgroup)]);
  const directory = cgroupDirectory(launch.cgroup);
  assert(directory !== undefined);
  await eventually("it removed", async () => {
    removeCgroup(launch.cgroup ?? "");
    return (await exists(directory)) ? undefined : true;
  });
});

test("an escapee without session and mark of a killed shim is found by its cgroup, and killed by it", async () => {
  const script = `env -i setsid sh -c 'echo $$ > "$0"; trap "" TERM; while :; do sleep 0.05; done' "$0" & wait`;
  const file = path.join(root, "escapee");
  const launch = await start(launcher, ["sh", "-c", script, file]);
  const escapee = Number(await lineFrom(file));
  process.kill(launch.identity.pid, "SIGKILL");
  await eventually("the shim gone", async () => (isAlive(launch.identity) ? undefined : true));
  const adopted = await launcher.adopt(launch.launchId);
  assert(adopted.kind === "remains");
  assert(adopted.survivors.every(({ isProved }) => isProved));
  assert(adopted.survivors.some(({ pid }) => pid === escapee));
  assert.deepEqual(await launcher.stop(adopted.launch, { graceMs: 100 }), { kind: "gone", reason: "gone" });
  assert(["Z", undefined].includes(readProcessStat(escapee)?.state));
  assert.deepEqual(await launcher.remove(launch.launchId), { kind: "removed" });
  assert.equal(await exists(cgroupDirectory(launch.cgroup ?? "") ?? ""), false);
});

test("a launch of a fork storm ends at once by its cgroup", async () => {
  const script =
    "trap '' TERM; f() { while :; do setsid sh -c 'exec sleep 600' & sleep 0.01; done; }; f & f & echo up; wait";
  const launch = await start(launcher, ["sh", "-c", script]);
  await lineFrom(path.join(launch.directory, "stdout"));
  const stopped = await launcher.stop(launch, { graceMs: 50 });
  assert(stopped.kind === "stopped" && stopped.isForced);
});

test("cgroups that the job made in its own go with it", async () => {
  const launch = await start(launcher, ["sh", "-c", "until [ -e go ]; do sleep 0.02; done"]);
  const directory = cgroupDirectory(launch.cgroup ?? "") ?? "";
  await fs.mkdir(path.join(directory, "inner", "most"), { recursive: true });
  await fs.writeFile(path.join(launch.directory, "work", "go"), "");
  await endingOf(launcher, launch);
  await launcher.remove(launch.launchId);
  assert.equal(await exists(directory), false);
});

test("a name that is taken, by the agent of another root, is not shared", () => {
  const [first, second] = [createCgroup("same"), createCgroup("same")];
  assert(first.kind === "own" && second.kind === "own");
  assert.notEqual(first.path, second.path);
  for (const { path: each } of [first, second]) removeCgroup(each);
});

test("without delegation a launch goes on without, and its directory says why", async () => {
  const home = await makeRoot();
  await fs.chown(home, 65534, 65534);
  const asNobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
  const { stdout } = spawnSync("setpriv", [...asNobody, process.execPath, agentMain, home, "once", "true"], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOLDFAST_TEST_SHIM: shimPath },
  });
  assert.match(stdout, /"kind":"exited","code":0/);
  const [launchId = ""] = stdout.split("\n");
  const spec = await fs.readFile(path.join(home, "launches", launchId, "spec.json"), "utf8");
  assert.match(spec, /"cgroup":\{"kind":"none","why":"the agent's own cgroup is not delegated to its account"\}/);
  assert(!(await fs.readFile(path.join(home, "launches", launchId, "identity"), "utf8")).includes("isInCgroup"));
  await removeRoot(home);
});
