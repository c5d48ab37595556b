// SPDX-License-Identifier: Apache-2.0
// The systemd units: systemd takes them, finds controller and agent hardened, and the commands in them are ones that run.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { agentUnitOf } from "../../src/bin/agent-unit.ts";
import type { UnitPart } from "../../src/cli/programs.ts";
import { controllerUnit } from "../../src/enrol/controller-unit.ts";
import { createHome } from "../kit/command.ts";
import { createTree } from "./kit.ts";

test("systemd finds no fault in the unit and an exposure of at most 2.0, with and without its own database", async (t) => {
  const home = createHome(t);
  const account = execFileSync("id", ["-un"], { encoding: "utf8" }).trim();
  for (const embedded of [["--embedded"], []]) {
    const printed = await home.run(["unit", "controller", "--account", account, ...embedded]);
    assert.equal(printed.code, 0, printed.stderr);
    const file = path.join(home.directory, "holdfast-controller.service");
    fs.writeFileSync(file, printed.stdout);
    const verify = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
    assert.deepEqual([verify.status, verify.stderr], [0, ""]);
    const threshold = ["security", "--offline=yes", "--no-pager", "--threshold=20", file];
    const security = spawnSync("systemd-analyze", threshold, { encoding: "utf8" });
    assert.equal(security.status, 0, security.stdout.split("\n").slice(-3).join("\n"));
  }
});

test("the unit's command is this installation's own, and a path with spaces and percents stays one word", async (t) => {
  const home = createHome(t);
  const printed = await home.run(["unit", "controller", "--listen", "10.0.0.5:7440"]);
  const [, node, program] = /^ExecStart=(\S+) (\S+) controller$/m.exec(printed.stdout) ?? [];
  assert.match(execFileSync(node ?? "", [program ?? "", "--version"], { encoding: "utf8" }), /^\d+\.\d+\.\d+/);
  assert.match(printed.stdout, /^Environment=HOLDFAST_LISTEN=10\.0\.0\.5:7440$/m);
  const odd = {
    node: "/opt/my node/bin",
    program: "/a$b/50%/holdfast.js",
    account: "x",
    listen: ":1",
    isEmbedded: true,
  };
  assert.match(
    controllerUnit(odd),
    /^ExecStart="\/opt\/my node\/bin" "\/a\$\$b\/50%%\/holdfast\.js" controller --embedded$/m,
  );
});

test("the unit's options reach the text", async () => {
  const { stdout } = await createTree().run("unit", "controller", "--embedded", "--account", "fleet");
  assert.deepEqual(JSON.parse(stdout), {
    embedded: true,
    account: "fleet",
    listen: "127.0.0.1:7440",
    isEmbedded: true,
  });
});

/** Accounts that every Debian has. */
const accounts = ["--account", "daemon", "--job-account", "games"];

test("systemd finds no fault in the units of a node, in both layouts, and an exposure of its agent of at most 2.0", async (t) => {
  const home = createHome(t);
  for (const options of [["--layout", "system"], ["--layout", "user"], ["--alone"]]) {
    const directory = path.join(home.directory, `units ${options.join("")}`);
    const written = await home.run(["unit", "agent", ...accounts, ...options, "--into", directory]);
    assert.equal(written.code, 0, written.stderr);
    const files = written.stdout.trim().split("\n");
    const names = ["holdfast-agent.service", "holdfast-launch.socket", "holdfast-launch@.service"];
    assert.deepEqual(
      files,
      names.map((name) => path.join(directory, name)),
    );
    for (const file of files) assert.equal(fs.statSync(file).mode & 0o777, 0o644);
    const scope = options.includes("user") ? ["--user"] : [];
    const env = { ...process.env, XDG_RUNTIME_DIR: home.directory };
    const verify = spawnSync("systemd-analyze", [...scope, "verify", ...files], { encoding: "utf8", env });
    assert.deepEqual([verify.status, verify.stderr], [0, ""], options.join(" "));
    if (scope.length > 0) continue;
    const threshold = ["security", "--offline=yes", "--no-pager", "--threshold=20", files[0] ?? ""];
    const security = spawnSync("systemd-analyze", threshold, { encoding: "utf8" });
    assert.equal(security.status, 0, security.stdout.split("\n").slice(-3).join("\n"));
  }
});

test("the units of a node name this installation, and keep accounts and rights of a job in root's hands", async () => {
  type Options = Parameters<typeof agentUnitOf>[0];
  const print = async (part: UnitPart, options: Partial<Options> = {}): Promise<string> => {
    const usual = { layout: "system", isAlone: false, account: "daemon", jobAccount: "games" } as const;
    return (await agentUnitOf({ part, ...usual, ...options }, {})).text;
  };
  const agent = await print("agent");
  const [, node, program] = /^ExecStart=(\S+) (\S+) agent --on-stop leave --job-account games$/m.exec(agent) ?? [];
  assert.match(execFileSync(node ?? "", [program ?? "", "--version"], { encoding: "utf8" }), /^\d+\.\d+\.\d+/);
  const kept = ["KillMode=process", "OOMPolicy=continue", "Type=exec", "UMask=0077"];
  for (const line of [...kept, "RestartPreventExitStatus=64 77 78 83 84 86 98 126"])
    assert.ok(agent.split("\n").includes(line), line);
  const launch = await print("launch");
  const [, shim] = /^ExecStart=(\S+) --gate games$/m.exec(launch) ?? [];
  assert.ok(fs.statSync(shim ?? "").isFile());
  for (const line of ["User=daemon", "Group=games", "AmbientCapabilities=CAP_SETUID CAP_KILL", "Delegate=yes"])
    assert.ok(launch.split("\n").includes(line), line);
  // Models only: nothing to become, and no right to.
  assert.doesNotMatch(await print("launch", { isAlone: true }), /CAP_|games/);
  assert.match(await print("launch-socket"), /^SocketUser=daemon\nSocketGroup=daemon\nSocketMode=0600$/m);
  assert.doesNotMatch(await print("launch", { layout: "user" }), /User=|Group=|CAP_/);
});
