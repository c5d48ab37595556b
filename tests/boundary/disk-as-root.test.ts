// SPDX-License-Identifier: Apache-2.0
// Real disks that fill, turn read-only and lose their power: mounting takes root, so the runner leaves this file out for others.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import koffi from "koffi";
import { systemClock } from "../../src/std/clock.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";
import { directoryOf, openBoundary, startOf } from "./kit.ts";

const main = fileURLToPath(new URL("store-main.ts", import.meta.url));

function call(program: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  assert.equal(status, 0, `${program} ${args.join(" ")}: ${stderr}`);
}

function smallDisk(t: TestContext): string {
  const disk = path.join(directoryOf(t), "disk");
  fs.mkdirSync(disk);
  call("mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", disk);
  cleanupOf(t).defer(() => void spawnSync("umount", ["-l", disk]));
  return disk;
}

function fill(file: string): void {
  const fd = fs.openSync(file, "w");
  try {
    for (;;) fs.writeSync(fd, Buffer.alloc(4096));
  } catch {
    // Full: that is what is wanted.
  } finally {
    fs.closeSync(fd);
  }
}

test("a full disk under one slot refuses the start and names the slot; with room it goes on by itself, and nothing is lost", async (t) => {
  const disk = smallDisk(t);
  const slots = [path.join(directoryOf(t), "slot"), path.join(disk, "slot")];
  {
    using life = await openBoundary(slots);
    assert.equal((await life.boundary.startAttempt(startOf(1))).kind, "admitted");
    fill(path.join(disk, "filler"));
    const started = await life.boundary.startAttempt(startOf(2));
    assert.ok(started.kind === "unable");
    assert.ok(
      started.text.startsWith(`${slots[1]}/boundary could not be written (ENOSPC): check this disk`),
      started.text,
    );
    await life.boundary.probe();
    assert.equal(life.boundary.state.kind, "unwritable");
    fs.rmSync(path.join(disk, "filler"));
    await life.boundary.probe();
    assert.equal(life.boundary.state.kind, "trusted");
  }
  using life = await openBoundary(slots);
  assert.deepEqual(
    life.boundary.record.attempts.map(({ jobId }) => jobId),
    [startOf(1).jobId],
  );
});

test("a disk that turns read-only refuses the start and names the slot; what is on it is read", async (t) => {
  const disk = smallDisk(t);
  const slots = [path.join(directoryOf(t), "slot"), path.join(disk, "slot")];
  using life = await openBoundary(slots);
  await life.boundary.startAttempt(startOf(1));
  // The lock is open for writing: without -f the kernel would call the disk busy.
  call("mount", "--bind", disk, disk);
  cleanupOf(t).defer(() => void spawnSync("umount", ["-l", disk]));
  call("mount", "-o", "remount,ro,bind", disk);
  const started = await life.boundary.startAttempt(startOf(2));
  assert.ok(started.kind === "unable");
  assert.match(started.text, /slot\/boundary could not be written \(EROFS\): check this disk/);
  const loaded = await life.tenant.load();
  assert.equal(loaded.kind, "adopted");
});

/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: what was not flushed is gone, as when the power fails. */
function cutPower(mountPoint: string): void {
  const ioctl = koffi.load(null).func("int ioctl(int fd, unsigned long request, uint32_t *argument)");
  const fd = fs.openSync(mountPoint, "r");
  try {
    assert.equal(ioctl(fd, 0x8004587d, [2]), 0, `EXT4_IOC_SHUTDOWN: errno ${koffi.errno()}`);
  } finally {
    fs.closeSync(fd);
  }
}

test("P10: the power of a real ext4 is cut at random moments, 12 times: every start that was acknowledged is there afterwards", async (t) => {
  const directory = directoryOf(t);
  const [image, disk] = [path.join(directory, "image"), path.join(directory, "disk")];
  fs.mkdirSync(disk);
  call("truncate", "-s", "24M", image);
  call("mkfs.ext4", "-q", image);
  const mount = (): void => call("mount", "-o", "loop", image, disk);
  mount();
  cleanupOf(t).defer(() => void spawnSync("umount", ["-l", disk]));
  const slots = [path.join(disk, "a"), path.join(disk, "b")];
  const acknowledged = new Set<number>();
  for (let round = 0; round < 12; round++) {
    const first = round * 1000;
    const child = spawn(process.execPath, [main, String(first), "0", ...slots], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const closed = once(child, "close");
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const starts = Math.floor(Math.random() * 6);
    await until("it stores", () => said.split(" admitted").length > starts && said.includes("state trusted"));
    // tidy-allow wait: the moment of the power cut is the random input of this test
    await systemClock.sleep(Math.random() * 20);
    cutPower(disk);
    child.kill("SIGKILL");
    await closed;
    for (const match of said.matchAll(/^(\d+) admitted$/gm)) acknowledged.add(Number(match[1]));
    call("umount", disk);
    mount();
    using life = await openBoundary(slots);
    assert.deepEqual(life.boundary.state, { kind: "trusted" }, `round ${round}`);
    const known = new Set(life.boundary.record.attempts.map(({ jobId }) => Number(jobId.slice("job_".length))));
    assert.deepEqual(
      [...acknowledged].filter((number) => !known.has(number)),
      [],
      `round ${round}`,
    );
    // Room for the next ones.
    for (const number of known) await life.boundary.closeAttempt(startOf(number));
    acknowledged.clear();
  }
});
