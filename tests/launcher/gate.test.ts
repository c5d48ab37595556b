// SPDX-License-Identifier: Apache-2.0
// At most one start per purpose, and none before the gate: agents that die, directories that exist, shims that do not work.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { currentAccount, Launcher, launchIdOf, pathsIn, shimPathFor } from "../../src/launcher/launcher.ts";
import { systemClock } from "../../src/std/clock.ts";
import {
  endingOf,
  eventually,
  lineFrom,
  makeRoot,
  openLauncher,
  prepare,
  purpose,
  removeRoot,
  run,
  shimPath,
  start,
} from "./kit.ts";

const agentMain = fileURLToPath(new URL("agent-main.ts", import.meta.url));

let root = "";
let launcher: Launcher;
before(async () => {
  root = await makeRoot();
  launcher = await openLauncher(root);
});
after(() => removeRoot(root));

/** A started agent: kill it, and what became of its launch is ours to find. */
async function startAgent(
  mode: string,
  argv: readonly string[],
): Promise<{ readonly launchId: string; readonly kill: () => Promise<void> }> {
  const agent = spawn(process.execPath, [agentMain, root, mode, ...argv], { stdio: ["ignore", "pipe", "inherit"] });
  const [launchId] = (await once(createInterface(agent.stdout), "line")) as [string];
  const kill = async (): Promise<void> => {
    const gone = once(agent, "exit");
    agent.kill("SIGKILL");
    await gone;
  };
  return { launchId, kill };
}

function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    signal?.addEventListener("abort", () => resolve());
  });
}

test("runs nothing before the gate opens, and abandon proves it", async () => {
  const launch = await prepare(launcher, ["sh", "-c", "echo ran"]);
  assert.equal((await launcher.adopt(launch.launchId)).kind, "alive");
  assert.equal((await launch.abandon()).kind, "not-started");
  assert.equal((await launcher.adopt(launch.launchId)).kind, "not-started");
  assert.equal((await fs.stat(pathsIn(launch.directory).stdout)).size, 0);
});

test("an agent killed before the gate leaves a launch that was provably not started", async () => {
  const agent = await startAgent("gate", ["sh", "-c", "echo ran"]);
  await agent.kill();
  const adopted = await eventually("the shim's last word", async () => {
    const now = await launcher.adopt(agent.launchId);
    return now.kind === "alive" ? undefined : now;
  });
  assert.equal(adopted.kind, "not-started");
  assert.deepEqual(adopted.spec?.argv, ["sh", "-c", "echo ran"]);
});

test("an agent killed while its job runs does not disturb it: it is adopted and its real ending is read", async () => {
  const go = path.join(root, "go");
  const agent = await startAgent("hold", ["sh", "-c", 'echo $$; until [ -e "$0" ]; do sleep 0.02; done; exit 9', go]);
  const job = await lineFrom(pathsIn(launcher.directoryOf(agent.launchId)).stdout);
  await agent.kill();
  const adopted = await launcher.adopt(agent.launchId);
  assert(adopted.kind === "alive");
  await fs.stat(`/proc/${job}`);
  const ending = launcher.waitEnding(adopted.launch, AbortSignal.timeout(20_000));
  await fs.writeFile(go, "");
  const exit = await ending;
  assert(exit?.kind === "exited");
  assert.equal(exit.code, 9);
  const later = await launcher.adopt(agent.launchId);
  assert(later.kind === "ended");
  assert.deepEqual(later.exit, exit);
});

test("the end of an adopted launch is a notice, not a look now and then: it comes although no period ever passes", async () => {
  const agent = await startAgent("hold", [
    "sh",
    "-c",
    'until [ -e "$0" ]; do sleep 0.02; done',
    path.join(root, "notice"),
  ]);
  await agent.kill();
  const sleepless = { ...systemClock, sleep: (_: number, signal?: AbortSignal) => aborted(signal) };
  const other = await Launcher.open({ root, shimPath, account: currentAccount(), clock: sleepless });
  const adopted = await other.adopt(agent.launchId);
  assert(adopted.kind === "alive");
  const late = AbortSignal.timeout(20_000);
  const ending = other.waitEnding(adopted.launch, late);
  await fs.writeFile(path.join(root, "notice"), "");
  assert.equal((await ending)?.kind, "exited");
  assert.equal(late.aborted, false);
});

test("an adopted job can be stopped", async () => {
  const agent = await startAgent("hold", ["sleep", "600"]);
  await agent.kill();
  const adopted = await launcher.adopt(agent.launchId);
  assert(adopted.kind === "alive");
  const stopped = await launcher.stop(adopted.launch);
  assert(stopped.kind === "stopped" && !stopped.isForced);
});

test("the same purpose is refused a second time: while it runs, after its end, and by another agent", async () => {
  const request = { purpose: purpose(), argv: ["true"], environment: {} };
  const first = await launcher.prepare(request);
  assert(first.kind === "prepared");
  const refused = { kind: "already-launched", launchId: launchIdOf(request.purpose) };
  assert.deepEqual(await launcher.prepare(request), refused);
  await first.launch.openGate();
  await endingOf(launcher, first.launch);
  assert.deepEqual(await (await openLauncher(root)).prepare(request), refused);
});

test("a signed job's directory attests what ran, its position is a fence, and each kind of purpose starts", async () => {
  const signed = Uint8Array.from({ length: 300 }, (_, index) => index % 256);
  const argv = ["true"];
  const position = { kind: "signed", session: "session_1", position: "7" } as const;
  const first = await launcher.prepare({ purpose: position, argv, environment: {}, signed });
  assert(first.kind === "prepared");
  const spec = JSON.parse(await fs.readFile(path.join(first.launch.directory, "spec.json"), "utf8")) as object;
  assert("signed" in spec && spec.signed === Buffer.from(signed).toString("base64"));
  await first.launch.openGate();
  assert.equal((await endingOf(launcher, first.launch)).kind, "exited");
  const again = await launcher.prepare({ purpose: position, argv, environment: {}, signed });
  assert.deepEqual(again, { kind: "already-launched", launchId: "signed-session_1-7" });
  const adopted = await launcher.adopt("signed-session_1-7");
  assert(adopted.kind === "ended" && adopted.spec?.purpose.kind === "signed");
  const model = { kind: "model", scene: "scene_1", model: "model_1", generation: "1" } as const;
  const output = { mode: "pump", fileBytes: 4096, files: 2 } as const;
  const server = await launcher.prepare({ purpose: model, argv, environment: {}, output });
  assert(server.kind === "prepared" && server.launch.launchId === "model-scene_1-model_1-1");
  await server.launch.abandon();
  await assert.rejects(launcher.prepare({ purpose: { ...position, position: "8" }, argv, environment: {} }), {
    code: "launch_invalid",
  });
  await assert.rejects(launcher.prepare({ purpose: { ...model, scene: "a/../b" }, argv, environment: {} }), {
    code: "launch_invalid",
  });
});

test("of 20 prepares of one purpose at the same time exactly one wins", async () => {
  const request = { purpose: purpose(), argv: ["true"], environment: {} };
  const all = await Promise.all(Array.from({ length: 20 }, () => launcher.prepare(request)));
  const winners = all.flatMap((each) => (each.kind === "prepared" ? [each.launch] : []));
  assert.equal(winners.length, 1);
  for (const winner of winners) await winner.abandon();
});

test("lists every launch, and removes only those that ended", async () => {
  const ended = await run(launcher, ["sh", "-c", "mkdir -p a/b; touch a/b/c; chmod 500 a/b; chmod 000 a"]);
  const alive = await start(launcher, ["sleep", "600"]);
  const listed = await launcher.list();
  assert(listed.includes(ended.launch.launchId) && listed.includes(alive.launchId));
  assert.deepEqual(await launcher.remove(alive.launchId), { kind: "refused", reason: "alive" });
  assert.deepEqual(await launcher.remove(ended.launch.launchId), { kind: "removed" });
  assert(!(await launcher.list()).includes(ended.launch.launchId));
  await launcher.stop(alive);
});

test("a launch without spec or identity was not started; one with a broken exit file is damaged, not ended", async () => {
  const bare = launchIdOf(purpose());
  await fs.mkdir(launcher.directoryOf(bare));
  assert.equal((await launcher.adopt(bare)).kind, "not-started");
  await fs.writeFile(path.join(launcher.directoryOf(bare), "spec.json.tmp"), '{"vers');
  assert.equal((await launcher.adopt(bare)).kind, "not-started");
  const { launch } = await run(launcher, ["true"]);
  await fs.writeFile(path.join(launch.directory, "exit"), '{"version":1,"kind":"exited"}');
  assert.equal((await launcher.adopt(launch.launchId)).kind, "damaged");
  await fs.writeFile(path.join(launch.directory, "exit"), '{"version":2}');
  await assert.rejects(launcher.adopt(launch.launchId), { code: "launch_newer" });
});

test("says what is wrong with a shim that is missing, not executable, for another processor, or no program", async () => {
  assert.throws(() => shimPathFor("riscv64"), { code: "shim_unusable" });
  assert.throws(() => shimPathFor("x64", "/nonexistent"), { code: "shim_unusable" });
  const broken = path.join(root, "broken-shim");
  await fs.writeFile(broken, "\x7fELF but not really", { mode: 0o755 });
  const passing = path.join(root, "passing-shim");
  await fs.copyFile(shimPath, passing);
  const options = { root, account: currentAccount(), clock: systemClock };
  const request = { purpose: purpose(), argv: ["true"], environment: {} };
  const withBroken = await Launcher.open({ ...options, shimPath: broken });
  await assert.rejects(withBroken.prepare({ ...request, purpose: purpose() }), { code: "launch_failed" });
  const withMissing = await Launcher.open({ ...options, shimPath: passing });
  await fs.rm(passing);
  await assert.rejects(withMissing.prepare(request), { code: "shim_unusable" });
  // The first one was never spawned, so it is not fenced.
  const again = await launcher.prepare(request);
  assert(again.kind === "prepared");
  await again.launch.abandon();
});

const asNobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];

test("an agent that is an ordinary user launches too", async () => {
  const home = await makeRoot();
  const isRoot = process.getuid?.() === 0;
  if (isRoot) await fs.chown(home, 65534, 65534);
  const program = [process.execPath, agentMain, home, "once", "id", "-u"];
  const [command = "", ...args] = isRoot ? ["setpriv", ...asNobody, ...program] : program;
  const agent = spawn(command, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"], HOLDFAST_TEST_SHIM: shimPath },
  });
  const lines: string[] = [];
  for await (const line of createInterface(agent.stdout)) lines.push(line);
  const [launchId = "", ending = ""] = lines;
  assert.match(ending, /"kind":"exited","code":0/);
  assert.equal(
    await fs.readFile(pathsIn(path.join(home, "launches", launchId)).stdout, "utf8"),
    isRoot ? "65534\n" : `${process.getuid?.()}\n`,
  );
  await removeRoot(home);
});
