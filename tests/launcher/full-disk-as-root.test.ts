// SPDX-License-Identifier: Apache-2.0
// A really full disk, a tmpfs of 512 KiB: mounting takes root, so the runner leaves this file out for others and says so.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { makeRoot, openLauncher, prepare, run } from "./kit.ts";

let root = "";
before(async () => {
  root = await makeRoot();
});
after(() => fs.rm(root, { recursive: true, force: true }));

test("a job that fills the disk still gets its exit file", async () => {
  const disk = path.join(root, "small disk");
  await fs.mkdir(disk);
  assert.equal(spawnSync("mount", ["-t", "tmpfs", "-o", "size=512k", "tmpfs", disk]).status, 0, "root may mount");
  await using stack = new AsyncDisposableStack();
  stack.defer(() => void spawnSync("umount", ["-l", disk]));
  const { ending } = await run(await openLauncher(disk), ["sh", "-c", "head -c 9999999 /dev/zero; exit 6"]);
  assert(ending.kind === "exited" && ending.code === 6);
  assert(ending.stdoutBytes > 100_000);
  await assert.rejects(prepare(await openLauncher(disk), ["true"]), { code: "disk_full" });
});

test("a full disk never stalls what a pump carries: what cannot be kept is counted", async () => {
  const disk = path.join(root, "disk of a pump");
  await fs.mkdir(disk);
  assert.equal(spawnSync("mount", ["-t", "tmpfs", "-o", "size=512k", "tmpfs", disk]).status, 0, "root may mount");
  await using stack = new AsyncDisposableStack();
  stack.defer(() => void spawnSync("umount", ["-l", disk]));
  const output = { mode: "pump", fileBytes: 10_000_000, files: 2 } as const;
  const launcher = await openLauncher(disk);
  const { ending } = await run(launcher, ["sh", "-c", "head -c 9999999 /dev/zero; exit 6"], { output });
  assert(ending.kind === "exited" && ending.code === 6);
  assert.equal(ending.stdoutBytes, 9_999_999);
  assert((ending.stdoutDroppedBytes ?? 0) > 9_000_000);
});
