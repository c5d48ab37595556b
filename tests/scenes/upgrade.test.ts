// SPDX-License-Identifier: Apache-2.0
// A restart of the agent and a replaced installation disturb no model and no gateway, and `upgrade --check` proves it, or says
// what is another process than before.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanupOf } from "../kit/cleanup.ts";
import { freePort } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";
import { createSceneMachine, stub } from "./kit.ts";

const checkout = fileURLToPath(new URL("../..", import.meta.url));

test("P8: pids and identities are the same across a restart of the agent and a replaced installation; a changed one is named", async (t) => {
  const machine = await createSceneMachine(t);
  machine.write({ models: stub("red", { port: await freePort() }), scenes: { one: { models: ["red"] } } });
  const first = await machine.agent();
  await machine.ok("scene", "activate", "one");
  assert.match(await machine.ok("upgrade", "--check"), /model red +pid \d+\ngateway +pid \d+\nNoted\./);
  first.process.kill("SIGTERM");
  assert.equal(await first.ended, 0);

  // The new installation is another directory, as after a replaced bundle.
  const bundle = path.join(machine.root, "bundle");
  for (const part of ["src", "native", "package.json"])
    fs.cpSync(path.join(checkout, part), path.join(bundle, part), { recursive: true });
  fs.symlinkSync(path.join(checkout, "node_modules"), path.join(bundle, "node_modules"));
  const program = path.join(bundle, "src", "bin", "holdfast.ts");
  const agent = spawn(process.execPath, [program, "agent", "--alone", "--root", machine.root], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  agent.stderr.on("data", (piece: Buffer) => (said += piece.toString()));
  cleanupOf(t).defer(() => void agent.kill("SIGKILL"));
  await until("the new agent has resumed", () => said.includes("one is active"));
  const same = await machine.ok("upgrade", "--check");
  assert.match(
    same,
    /model +red: exactly itself\ngateway +main: answers as red\nEvery process is the very one that ran before\./,
  );

  await machine.ok("upgrade", "--check");
  const [model] = (await machine.status()).models;
  spawnSync("pkill", ["-KILL", "-s", String(model?.pid)]);
  await until("it is started again", async () => {
    const [now] = (await machine.status()).models;
    return now?.condition === "healthy" && now.pid !== model?.pid;
  });
  const changed = await machine.run("upgrade", "--check");
  assert.equal(changed.code, 1);
  assert.match(changed.stdout, /model red: another process than before[^]*Something was disturbed/);
  const gone = once(agent, "exit");
  agent.kill("SIGTERM");
  await gone;
});

test("systemd takes the unit of an agent, which ends nothing but the agent", async (t) => {
  const machine = await createSceneMachine(t);
  const units = path.join(machine.root, "units");
  await machine.ok("unit", "agent", "--alone", "--account", "root", "--root", machine.root, "--into", units);
  const file = path.join(units, "holdfast-agent.service");
  for (const line of [/^KillMode=process$/m, new RegExp(`^Environment=HOLDFAST_ROOT=${machine.root}$`, "m")])
    assert.match(fs.readFileSync(file, "utf8"), line);
  const verify = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
  assert.deepEqual([verify.status, verify.stderr], [0, ""]);
  // What would change if it were installed now is said before.
  machine.write({ models: stub("red", { port: await freePort() }), scenes: { one: { models: ["red"] } } });
  const warned = await machine.run("unit", "agent", "--alone", "--root", machine.root);
  assert.match(warned.stderr, /no scene is active: adopt the one that runs first/);
});
