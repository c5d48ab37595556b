// SPDX-License-Identifier: Apache-2.0
// holdfast launch list, show and stop on a machine with launches in every state, as a person runs them.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import path from "node:path";
import { type TestContext, test } from "node:test";
import type { LaunchView } from "../../src/cli/programs.ts";
import type { Launcher } from "../../src/launcher/launcher.ts";
import { isAlive } from "../../src/std/process.ts";
import { assertClearFault } from "../cli/kit.ts";
import { createHome, type Home } from "../kit/command.ts";
import { eventually, lineFrom, openLauncher, prepare, run, start } from "./kit.ts";

async function machine(t: TestContext): Promise<{ readonly home: Home; readonly launcher: Launcher }> {
  const home = createHome(t);
  const node = path.join(home.root, "node");
  await fs.mkdir(node, { recursive: true });
  return { home, launcher: await openLauncher(node) };
}

async function states(home: Home): Promise<{ readonly [launchId: string]: LaunchView["state"] }> {
  const { stdout, code } = await home.run(["launch", "list", "--json"]);
  assert.equal(code, 0);
  const views = JSON.parse(stdout) as readonly LaunchView[];
  return Object.fromEntries(views.map(({ launchId, state }) => [launchId, state]));
}

test("lists every launch directory with its state, also what is damaged, newer or left by a killed shim", async (t) => {
  const home = createHome(t);
  const none = await home.run(["launch", "list"]);
  assert.deepEqual([none.code, none.stdout], [0, "No launch on this machine.\n"]);
  const node = path.join(home.root, "node");
  await fs.mkdir(node, { recursive: true });
  const launcher = await openLauncher(node);
  const running = await start(launcher, ["sleep", "600"]);
  const ended = await run(launcher, ["sh", "-c", "exit 3"]);
  const abandoned = await prepare(launcher, ["true"]);
  await abandoned.abandon();
  const damaged = await run(launcher, ["true"]);
  await fs.writeFile(path.join(damaged.launch.directory, "exit"), "{");
  const newer = await run(launcher, ["true"]);
  await fs.writeFile(path.join(newer.launch.directory, "spec.json"), '{"version":9}');
  const file = path.join(home.directory, "grandchild");
  const killed = await start(launcher, ["sh", "-c", `sh -c 'echo $$ > "$0"; exec sleep 600' "$0" & wait`, file]);
  await lineFrom(file);
  process.kill(killed.identity.pid, "SIGKILL");
  await eventually("the shim gone", async () => (isAlive(killed.identity) ? undefined : true));
  assert.deepEqual(await states(home), {
    [running.launchId]: "running",
    [ended.launch.launchId]: "ended",
    [abandoned.launchId]: "not-started",
    [damaged.launch.launchId]: "damaged",
    [newer.launch.launchId]: "newer",
    [killed.launchId]: "remains",
  });
  const { stdout } = await home.run(["launch", "list"]);
  assert.match(stdout, /^LAUNCH +STATE +PID +SINCE +END +FOR$/m);
  assert.match(stdout, new RegExp(`^${running.launchId} +running +${running.identity.pid} `, "m"));
  assert.match(stdout, new RegExp(`^${ended.launch.launchId} +ended .* exited with code 3 +epoch 1 of job_`, "m"));
  const stopped = await home.run(["launch", "stop", killed.launchId, "--grace", "0.1"]);
  assert.deepEqual([stopped.code, stopped.stderr], [0, ""]);
  assert.match(stopped.stdout, /nothing of it runs any more; its shim was killed/);
  assert.equal((await states(home))[killed.launchId], "interrupted");
  await launcher.stop(running);
});

test("shows what ran, its limits, its hashes and its cgroup", async (t) => {
  const { home, launcher } = await machine(t);
  const { launch } = await run(launcher, ["sh", "-c", "echo out"], { limits: { openFiles: 64 } });
  const { stdout } = await home.run(["launch", "show", launch.launchId]);
  assert.match(stdout, /^end +exited with code 0$/m);
  assert.match(stdout, /^limits +.*openFiles 64/m);
  assert.match(stdout, /^cgroup +(\/|none: )/m);
  assert.match(stdout, /^output +4 and 0 bytes$/m);
  assert.match(stdout, /^stdout sha256 +[0-9a-f]{64}$/m);
  const json = JSON.parse((await home.run(["launch", "show", launch.launchId, "--json"])).stdout) as LaunchView;
  assert.deepEqual([json.state, json.argv, json.exit?.kind], ["ended", ["sh", "-c", "echo out"], "exited"]);
});

test("stops a launch with proof, says how it ended, and says the same of one that ended before", async (t) => {
  const { home, launcher } = await machine(t);
  const launch = await start(launcher, ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"]);
  await lineFrom(path.join(launch.directory, "stdout"));
  const stopped = await home.run(["launch", "stop", launch.launchId, "--grace", "0.1"]);
  assert.equal(
    stopped.stdout,
    `${launch.launchId}: stopped by SIGKILL, after its grace; it was ended by SIGKILL\n`,
    stopped.stderr,
  );
  assert.equal(isAlive(launch.identity), false);
  const again = await home.run(["launch", "stop", launch.launchId, "--json"]);
  assert.deepEqual(JSON.parse(again.stdout), {
    launchId: launch.launchId,
    kind: "already-ended",
    text: "nothing of it runs; it was ended by SIGKILL",
  });
});

test("an id that has no directory, a path, and a grace that is none are clear faults", async (t) => {
  const { home } = await machine(t);
  for (const verb of ["show", "stop"])
    for (const launchId of ["attempt-job_1-1", "../node", "."]) {
      const { code, stderr } = await home.run(["launch", verb, launchId]);
      assert.equal(code, 66);
      assertClearFault(stderr);
    }
  const { code, stderr } = await home.run(["launch", "stop", "x", "--grace", "soon"]);
  assert.equal(code, 64);
  assertClearFault(stderr);
});

test("a launch that cannot be ended fails and names who is still there", async (t) => {
  const { home, launcher } = await machine(t);
  const file = path.join(home.directory, "unmarked");
  const script = `env -i sh -c 'echo $$ > "$0"; exec sleep 600' "$0" & wait`;
  const launch = await start(launcher, ["sh", "-c", script, file]);
  const pid = Number(await lineFrom(file));
  process.kill(launch.identity.pid, "SIGKILL");
  await eventually("the shim gone", async () => (isAlive(launch.identity) ? undefined : true));
  // As on a machine without cgroups: whether it is ours cannot be proved, so it is not signalled.
  const identity = path.join(launch.directory, "identity");
  await fs.writeFile(identity, (await fs.readFile(identity, "utf8")).replace(',"isInCgroup":true', ""));
  const { code, stderr } = await home.run(["launch", "stop", launch.launchId, "--grace", "0"]);
  assert.equal(code, 113);
  assertClearFault(stderr);
  assert.match(stderr, new RegExp(`does not end; still there: sleep \\(pid ${pid}\\)`));
  process.kill(pid, "SIGKILL");
});
