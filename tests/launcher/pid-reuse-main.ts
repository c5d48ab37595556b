// SPDX-License-Identifier: Apache-2.0
// Runs as the second process of a pid namespace of its own, where it can say which pid comes next. It makes a stranger take the
// pid of a dead process in the worst moment and prints, as JSON, what the signal did. Used by pid-reuse-as-root.test.ts.

import { spawn, type ChildProcess } from "node:child_process";
import fs from "node:fs";
import { createInterface } from "node:readline";
import { once } from "node:events";
import { identityOf, isAlive, readProcessStat, signalGroup, signalIdentity } from "../../src/std/process.ts";

const SIGKILL = 9;
const VICTIM_LIVES_MS = 25;

/** A victim in its own group whose parent reaps it at once, so that its pid is free in the moment it is killed. */
async function startVictim(livesMs: number): Promise<{ readonly pid: number; readonly parent: ChildProcess }> {
  const parent = spawn("sh", ["-c", "setsid sleep 600 & echo $!; wait"], { stdio: ["ignore", "pipe", "ignore"] });
  const [line] = (await once(createInterface(parent.stdout), "line")) as [string];
  const pid = Number(line);
  while (readProcessStat(pid)?.groupId !== pid) await new Promise((resolve) => setImmediate(resolve));
  const until = performance.now() + livesMs;
  while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve));
  return { pid, parent };
}

/** Synchronous: between a check and a send nothing else may run. */
function takeOver(pid: number): ChildProcess {
  process.kill(pid, "SIGKILL");
  while (readProcessStat(pid) !== undefined);
  fs.writeFileSync("/proc/sys/kernel/ns_last_pid", String(pid - 1));
  return spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
}

type Moment = "before" | "before-same-ticks" | "between";

async function round(send: typeof signalIdentity, moment: Moment): Promise<object> {
  const { pid } = await startVictim(moment === "between" ? VICTIM_LIVES_MS : 0);
  const identity = identityOf(pid);
  if (identity === undefined) throw new Error("the victim is not there");
  let stranger = moment === "between" ? undefined : takeOver(pid);
  // Ticks are 10 ms coarse: two processes with one pid in one tick are told apart by the inode of their pidfds.
  const startTicks = moment === "before-same-ticks" ? readProcessStat(pid)?.startTicks : identity.startTicks;
  const signalled = send({ ...identity, startTicks }, SIGKILL, () => void (stranger ??= takeOver(pid)));
  const now = identityOf(stranger?.pid ?? 0);
  const isStrangerAlive = now !== undefined && isAlive(now);
  stranger?.kill("SIGKILL");
  const hasInode = identity.pidfdInode !== undefined;
  return { send: send.name, moment, hasInode, isHit: stranger?.pid === pid, signalled, isStrangerAlive };
}

const results: object[] = [];
for (const send of [signalIdentity, signalGroup])
  for (const moment of ["before", "before-same-ticks", "between"] as const)
    for (let time = 0; time < 8; time++) results.push(await round(send, moment));
process.stdout.write(`${JSON.stringify(results)}\n`);
