// SPDX-License-Identifier: Apache-2.0
// The systemd unit of a controller: systemd takes it, finds it hardened, and the command in it is one that runs.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
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
