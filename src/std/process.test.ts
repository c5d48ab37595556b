// SPDX-License-Identifier: Apache-2.0
// A signal reaches exactly the process whose identity was stored (promise P7), or a reason comes back.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { identityOf, isAlive, parseProcessStat, signalGroup, signalIdentity } from "./process.ts";

test("a command name with spaces and parentheses does not confuse the parser", () => {
  const rest = Array.from({ length: 18 }, (_, index) => index + 4).join(" ");
  const stat = parseProcessStat(`42 (evil) R 1 (x) S 7 8 9 ${rest.split(" ").slice(3).join(" ")} 4711 0`);
  assert.deepEqual([stat?.state, stat?.parentPid, stat?.groupId, stat?.sessionId], ["S", 7, 8, 9]);
});

test("the identity of a live process is proved and signalled; of a dead one it is gone", async () => {
  const child = spawn("sleep", ["60"]);
  await once(child, "spawn");
  const identity = identityOf(child.pid ?? 0);
  assert.ok(identity !== undefined && isAlive(identity));
  assert.deepEqual(signalIdentity(identity, 15), { kind: "signalled" });
  await once(child, "exit");
  assert.equal(isAlive(identity), false);
  assert.deepEqual(signalIdentity(identity, 9), { kind: "refused", reason: "gone" });
});

test("a process with the same pid but another start, inode or boot is not signalled", async () => {
  const child = spawn("sleep", ["60"]);
  await once(child, "spawn");
  const identity = identityOf(child.pid ?? 0);
  assert.ok(identity !== undefined);
  assert.deepEqual(signalIdentity({ ...identity, startTicks: "1" }, 9), { kind: "refused", reason: "reused" });
  assert.deepEqual(signalIdentity({ ...identity, bootId: "other" }, 9), { kind: "refused", reason: "other-boot" });
  if (identity.pidfdInode !== undefined) {
    assert.deepEqual(signalIdentity({ ...identity, pidfdInode: "1" }, 9), { kind: "refused", reason: "reused" });
  }
  assert.deepEqual(signalIdentity({ ...identity, pid: process.pid }, 9), { kind: "refused", reason: "reused" });
  assert.equal(isAlive(identity), true, "nothing was signalled");
  child.kill("SIGKILL");
  await once(child, "exit");
});

test("a record without boot, pid above 1 and start ticks is legacy, and neither it nor our own process is ever signalled", async () => {
  const child = spawn("sleep", ["60"]);
  await once(child, "spawn");
  const identity = identityOf(child.pid ?? 0);
  assert.ok(identity !== undefined);
  for (const changed of [
    { bootId: undefined },
    { bootId: "" },
    { startTicks: undefined },
    { startTicks: "" },
    { pid: undefined },
    ...[-1, 0, 1, 1.5, Number.NaN].map((pid) => ({ pid })),
  ]) {
    for (const send of [signalIdentity, signalGroup])
      assert.deepEqual(send({ ...identity, ...changed }, 9), { kind: "refused", reason: "legacy" });
  }
  const own = identityOf(process.pid);
  assert.ok(own !== undefined);
  for (const send of [signalIdentity, signalGroup])
    assert.deepEqual(send(own, 9), { kind: "refused", reason: "reused" });
  assert.equal(isAlive(identity), true, "nothing was signalled");
  child.kill("SIGKILL");
  await once(child, "exit");
});

test("a group is signalled through its leader only, and never our own group", async () => {
  const leader = spawn("sh", ["-c", "sleep 60 & echo $!; wait"], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = (await once(leader.stdout, "data")) as [Buffer];
  const member = identityOf(Number(line.toString()));
  const identity = identityOf(leader.pid ?? 0);
  assert.ok(member !== undefined && identity !== undefined);
  assert.deepEqual(signalGroup(member, 9), { kind: "refused", reason: "not-group-leader" });
  const ours = spawn("sleep", ["60"]);
  await once(ours, "spawn");
  const inOurs = identityOf(ours.pid ?? 0);
  assert.ok(inOurs !== undefined);
  assert.deepEqual(signalGroup(inOurs, 9), { kind: "refused", reason: "not-group-leader" });
  ours.kill("SIGKILL");
  assert.deepEqual(signalGroup(identity, 9), { kind: "signalled" });
  await once(leader, "exit");
  for (let look = 0; look < 10_000 && isAlive(member); look++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isAlive(member), false);
  assert.deepEqual(signalGroup(identity, 9), { kind: "refused", reason: "gone" });
});

test("a zombie is gone", async () => {
  // The shell forks a child that ends at once and does not wait for it before it is asked to.
  const parent = spawn("sh", ["-c", "sh -c 'echo $$' & read line"], { stdio: ["pipe", "pipe", "ignore"] });
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(line.toString().trim());
  const identity = identityOf(pid);
  if (identity !== undefined) {
    for (let look = 0; look < 1000 && isAlive(identity); look++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isAlive(identity), false);
  }
  parent.stdin.end("\n");
  await once(parent, "exit");
});
