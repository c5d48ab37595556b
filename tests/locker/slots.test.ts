// SPDX-License-Identifier: Apache-2.0
// Slots on a real file system: who may hold one, what it looks like on disk, and what happens when it is not what it was.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { Locker, openSlot } from "../../src/locker/locker.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { append, fingerprint, NAME, textOf } from "./kit.ts";

const main = fileURLToPath(new URL("slot-main.ts", import.meta.url));

function directoryOf(t: TestContext): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "slots-"));
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function hold(t: TestContext, slot: string): Promise<{ readonly said: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, [main, slot], { stdio: ["ignore", "pipe", "inherit"] });
  cleanupOf(t).defer(() => void child.kill("SIGKILL"));
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { said: line.toString().trim(), child };
}

test("a slot is held by one locker, in this process and among all, and a killed holder leaves it free", async (t) => {
  const slot = path.join(directoryOf(t), "slot");
  {
    using own = openSlot(slot);
    assert.throws(() => openSlot(slot), { code: "root_in_use", message: new RegExp(`in use by pid ${process.pid}$`) });
    assert.equal((await hold(t, slot)).said, "root_in_use");
    assert.equal(own.place, slot);
  }
  const { said, child } = await hold(t, slot);
  assert.equal(said, "taken");
  assert.throws(() => openSlot(slot), { code: "root_in_use", message: new RegExp(`in use by pid ${child.pid}$`) });
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
  using again = openSlot(slot);
  assert.equal(again.place, slot);
});

test("P10: a slot that was used before and is not there reads as missing, and takes no store even once it is there again", async (t) => {
  const directory = directoryOf(t);
  const places = [path.join(directory, "a"), path.join(directory, "b")];
  await using stack = new AsyncDisposableStack();
  const slots = places.map((place, index) => stack.use(openSlot(place, index === 0)));
  const tenant = new Locker({ slots, fingerprint, random: systemRandom }).tenant(NAME);
  assert.deepEqual(await tenant.load(), { kind: "empty" });
  for (let turn = 0; turn < 2; turn++) {
    await assert.rejects(tenant.store(append("x")), {
      code: "store_failed",
      message: /\/b\/.*ENOENT.*is its disk mounted/,
    });
    fs.mkdirSync(places[1] ?? "", { recursive: true });
  }
  assert.deepEqual(fs.readdirSync(places[1] ?? ""), []);
});

test("what is stored is 0600 in a directory of 0700, whatever the umask, and comes back in the next life", async (t) => {
  const slot = path.join(directoryOf(t), "deep", "er", "slot");
  const before = process.umask(0);
  try {
    using disk = openSlot(slot);
    const tenant = new Locker({ slots: [disk], fingerprint, random: systemRandom }).tenant(NAME);
    assert.deepEqual(await tenant.load(), { kind: "empty" });
    await tenant.store(append("kept"));
  } finally {
    process.umask(before);
  }
  assert.equal(fs.statSync(slot).mode & 0o777, 0o700);
  assert.equal(fs.statSync(path.join(slot, NAME)).mode & 0o777, 0o600);
  assert.deepEqual(fs.readdirSync(slot).sort(), ["locker.lock", NAME]);
  using disk = openSlot(slot);
  const loaded = await new Locker({ slots: [disk], fingerprint, random: systemRandom }).tenant(NAME).load();
  assert.ok(loaded.kind === "adopted" && textOf(loaded.record) === "kept");
});

test("a record that is a directory, or that another node wrote, is no record: the place is named", async (t) => {
  const directory = directoryOf(t);
  const places = ["a", "b"].map((name) => path.join(directory, name));
  using stack = new DisposableStack();
  const slots = places.map((place) => stack.use(openSlot(place)));
  const load = (own = fingerprint) => new Locker({ slots, fingerprint: own, random: systemRandom }).tenant(NAME).load();
  fs.mkdirSync(path.join(places[1] ?? "", NAME));
  const unreadable = await load();
  assert.ok(unreadable.kind === "discard" && unreadable.why === "io");
  assert.equal(unreadable.text, `${places[1]} cannot be read (EISDIR): the disk may be failing`);
  fs.rmdirSync(path.join(places[1] ?? "", NAME));
  const tenant = new Locker({ slots, fingerprint: new Uint8Array(32), random: systemRandom }).tenant(NAME);
  await tenant.load();
  await tenant.store(append("theirs"));
  const foreign = await load();
  assert.ok(foreign.kind === "discard" && foreign.why === "foreign" && foreign.slots.length === 2);
});

test("a slot whose directory vanished fails every store and names the place, and reads as blank", async (t) => {
  const directory = directoryOf(t);
  using stack = new DisposableStack();
  const places = ["a", "b"].map((name) => path.join(directory, name));
  const slots = places.map((place) => stack.use(openSlot(place)));
  const tenant = new Locker({ slots, fingerprint, random: systemRandom }).tenant(NAME);
  await tenant.load();
  await tenant.store(append("a"));
  fs.rmSync(places[1] ?? "", { recursive: true });
  await assert.rejects(tenant.store(append("b")), {
    code: "store_failed",
    message: new RegExp(`^${places[1]}/${NAME} could not be written \\(ENOENT\\): is its disk mounted`),
  });
  const again = new Locker({ slots, fingerprint, random: systemRandom }).tenant(NAME);
  const loaded = await again.load();
  assert.ok(loaded.kind === "adopted");
  await assert.rejects(again.store(append("c")), { code: "store_failed" });
});
