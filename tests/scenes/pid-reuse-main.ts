// SPDX-License-Identifier: Apache-2.0
// Runs in a pid namespace of its own, where it can say which pid comes next: a stranger takes the pid of a model's dead shim, and
// the commands are asked to stop and to go on. Prints, as JSON, what they said and whether the stranger lives.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";
import { stubModel } from "../kit/stub-model.ts";

const root = process.argv[2] ?? "";
const port = Number(process.argv[3]);
const program = fileURLToPath(new URL("../../src/bin/holdfast.ts", import.meta.url));
const env = { PATH: process.env["PATH"] ?? "", HOME: root, HOLDFAST_ROOT: root, NO_COLOR: "1" };

function run(...args: readonly string[]): { readonly code: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { env, encoding: "utf8" });
  return { code: status, said: stdout + stderr };
}

/** A number is not free while a group or a session still has it: tried until it is. */
function takePid(pid: number): ChildProcess {
  for (let tries = 1; ; tries++) {
    fs.writeFileSync("/proc/sys/kernel/ns_last_pid", String(pid - 1));
    const stranger = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
    if (stranger.pid === pid || tries === 1000) return stranger;
    stranger.kill("SIGKILL");
  }
}

fs.writeFileSync(
  path.join(root, "scenes.yaml"),
  stringify({
    version: 1,
    models: { only: { argv: stubModel({ alias: "only", port }), port, marker: "only" } },
    scenes: { one: { models: ["only"] } },
  }),
);
const rounds: object[] = [];
for (const command of ["stop", "resume"]) {
  const activated = run("scene", "activate", "one");
  const state = parse(fs.readFileSync(path.join(root, ".kuda", "state.yaml"), "utf8")) as {
    models: { only: { pid: number } };
  };
  const { pid } = state.models.only;
  process.kill(pid, "SIGKILL");
  // The model dies with its shim. Reaped by the first process of the namespace.
  while (fs.existsSync(`/proc/${pid}`));
  const stranger = takePid(pid);
  const status = run("scene", "status", "--json");
  const asked = run("scene", command);
  const isAlive = /^State:\s+[RSD]/m.test(fs.readFileSync(`/proc/${stranger.pid}/status`, "latin1"));
  stranger.kill("SIGKILL");
  rounds.push({ command, isHit: stranger.pid === pid, activated, status: status.said, asked, isAlive });
}
run("scene", "stop");
process.stdout.write(`${JSON.stringify(rounds)}\n`);
