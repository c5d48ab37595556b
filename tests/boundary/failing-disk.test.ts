// SPDX-License-Identifier: Apache-2.0
// A real process whose n-th write, flush or rename fails, is torn or is its last, for n = 1, 2, … until a run passes: what it
// acknowledged is known to the next life, and what it refused names the disk. The faults come from a preloaded library.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { directoryOf, openBoundary, startOf } from "./kit.ts";

const main = fileURLToPath(new URL("store-main.ts", import.meta.url));
const source = fileURLToPath(new URL("failing-disk.c", import.meta.url));
const STARTS = 2;
const AT_ONCE = 4;

function compile(t: TestContext): string {
  const library = path.join(directoryOf(t), "failing-disk.so");
  const { status, stderr } = spawnSync("cc", ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  return library;
}

type Faulty = { readonly library: string; readonly directory: string; readonly at: number; readonly kind: string };

/** What it said, and a letter for each call that it made on its slots; "!" is the one that failed. */
async function run({
  library,
  directory,
  at,
  kind,
}: Faulty): Promise<{ readonly said: string; readonly calls: string }> {
  const log = path.join(directory, "calls");
  const slots = ["a", "b"].map((name) => path.join(directory, "slots", name));
  const env = {
    PATH: process.env["PATH"],
    LD_PRELOAD: library,
    HOLDFAST_FAULT: `${directory}/slots:${at}:${kind}`,
    HOLDFAST_FAULT_LOG: log,
  };
  const child = spawn(process.execPath, [main, "1", String(STARTS), ...slots], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await once(child, "close");
  return { said, calls: fs.readFileSync(log, "utf8") };
}

/** False when there is no such call any more. */
async function assertFault(t: TestContext, library: string, kind: string, at: number): Promise<boolean> {
  const directory = directoryOf(t);
  const { said, calls } = await run({ library, directory, at, kind });
  const place = `${kind} at call ${at} (${calls}): ${said}`;
  const slots = ["a", "b"].map((name) => path.join(directory, "slots", name));
  using life = await openBoundary(slots);
  assert.deepEqual(life.boundary.state, { kind: "trusted" }, place);
  const known = life.boundary.record.attempts.map(({ jobId }) => jobId);
  for (let number = 1; number <= STARTS; number++) {
    const isKnown = known.includes(startOf(number).jobId);
    if (said.includes(`${number} admitted`)) assert.ok(isKnown, place);
    // A refused one is gone with the next that is stored, and only the very last may lie in the slots.
    else if (said.includes(`${number + 1} admitted`)) assert.ok(!isKnown, place);
  }
  const refused = [...said.matchAll(/^\d+ unable (.*)$/gm)].map((match) => match[1] ?? "");
  for (const text of refused)
    assert.match(
      text,
      new RegExp(`^${directory}/slots/[ab]/boundary could not be written \\(E(?:IO|NOSPC)\\): check this disk`),
    );
  assert.equal((await life.boundary.startAttempt(startOf(99))).kind, "admitted", place);
  return calls.includes("!");
}

for (const kind of ["EIO", "ENOSPC", "kill", "torn"])
  test(`P10: a real process with ${kind} at its n-th call on a slot, for every n, loses nothing that it acknowledged`, async (t) => {
    const library = compile(t);
    let next = 1;
    let isOver = false;
    const work = async (): Promise<void> => {
      while (!isOver) {
        const at = next++;
        if (!(await assertFault(t, library, kind, at))) isOver = true;
        assert.ok(at < 60, "the run has an end");
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    assert.ok(next > STARTS * 8, `${next} calls`);
  });

test("P10: a slot's own directory is flushed into its parent before anything is stored in it, and each store is flushed twice", async (t) => {
  const { calls } = await run({ library: compile(t), directory: directoryOf(t), at: 9999, kind: "none" });
  // Both slots into their new parent, two flushes of a load of nothing to flush, then a store: write, flush, rename, flush.
  assert.match(calls, /^ff(?:wfrf)+$/);
  assert.equal(calls.match(/wfrf/g)?.length, STARTS * 2);
});
