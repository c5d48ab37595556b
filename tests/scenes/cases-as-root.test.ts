// SPDX-License-Identifier: Apache-2.0
// Case 13 for real: the recorded pid of a dead model is a stranger's by now. Choosing the next pid takes root and a pid namespace.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePort } from "../kit/stub-model.ts";

const main = fileURLToPath(new URL("pid-reuse-main.ts", import.meta.url));

type Asked = { readonly code: number | null; readonly said: string };
type Round = {
  readonly command: string;
  readonly isHit: boolean;
  readonly activated: Asked;
  readonly status: string;
  readonly asked: Asked;
  readonly isAlive: boolean;
};

test("case 13: a stranger that has the recorded pid of a dead model is not touched by a stop or a resume", async (t) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "scenes-"));
  t.after(() => fs.rmSync(root, { recursive: true, force: true }));
  // The shell is the first process of the namespace: it reaps what has lost its parent.
  const first = ["sh", "-c", '"$@"; exit $?', "sh"];
  const inNamespace = ["--pid", "--fork", "--mount-proc", "--kill-child", ...first, process.execPath, main, root];
  const { stdout, stderr, status } = spawnSync("unshare", [...inNamespace, String(await freePort())], {
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.equal(status, 0, stderr);
  const rounds = JSON.parse(stdout) as readonly Round[];
  assert.deepEqual(
    rounds.map(({ command }) => command),
    ["stop", "resume"],
  );
  for (const { command, isHit, activated, status: seen, asked, isAlive } of rounds) {
    assert.equal(activated.code, 0, activated.said);
    assert.ok(isHit, `the pid was reused: ${command}`);
    assert.match(seen, /"condition": "dead"/);
    assert.equal(asked.code, 0, asked.said);
    assert.ok(isAlive, `the stranger lives: ${command}: ${asked.said}`);
  }
});
