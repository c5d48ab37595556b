// SPDX-License-Identifier: Apache-2.0
// What a launch wrote is counted and hashed by its shim, bounded by its limits, and never stalls a model server.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { currentAccount, describeEnding, Launcher, pathsIn } from "../../src/launcher/launcher.ts";
import { systemClock } from "../../src/std/clock.ts";
import { endingOf, lineFrom, makeRoot, openLauncher, run, shimPath, start, removeRoot } from "./kit.ts";

let root = "";
let launcher: Launcher;
before(async () => {
  root = await makeRoot();
  launcher = await openLauncher(root);
});
after(() => removeRoot(root));

const hashOf = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const pump = { mode: "pump", fileBytes: 1024, files: 3 } as const;
/** Writes so many bytes that no two places of it look alike. */
const counting = (bytes: number): readonly string[] => ["sh", "-c", `seq 1 9999999 | head -c ${bytes}`];

test("counts and hashes both outputs, of every length around a block, as files and through a pump", async () => {
  for (const bytes of [0, 1, 55, 56, 63, 64, 65, 127, 128, 5_000_000]) {
    for (const output of [{ mode: "files" }, { ...pump, fileBytes: 10_000_000 }] as const) {
      const script = `seq 1 9999999 | head -c ${bytes}; seq 3 9999999 | head -c ${bytes} >&2`;
      const { ending, stdout, stderr } = await run(launcher, ["sh", "-c", script], { output });
      assert(ending.kind === "exited");
      assert.deepEqual([ending.stdoutBytes, ending.stderrBytes], [bytes, bytes]);
      assert.deepEqual([stdout.length, stderr.length], [bytes, bytes]);
      assert.deepEqual([ending.stdoutSha256, ending.stderrSha256], [hashOf(stdout), hashOf(stderr)], String(bytes));
    }
  }
});

test("an output beyond its limit breaks the job, is cut at the limit, and the ending names it", async () => {
  for (const stream of ["", ">&2"]) {
    const { ending, stdout, stderr } = await run(launcher, ["sh", "-c", `yes ${stream}; echo never`], {
      limits: { outputBytes: 100_000 },
    });
    assert(ending.kind === "signalled" && ending.limit === "output");
    assert.equal(describeEnding(ending), "passed its limit of output and was ended by SIGKILL");
    const whole = stream === "" ? stdout : stderr;
    assert.equal(whole.length, 100_000);
    assert.equal(hashOf(whole), stream === "" ? ending.stdoutSha256 : ending.stderrSha256);
  }
  // Also when the job is faster than any look at it; exactly at the limit it is fine.
  const fast = await run(launcher, counting(100_001), { limits: { outputBytes: 100_000 } });
  assert("limit" in fast.ending && fast.ending.limit === "output");
  const exact = await run(launcher, counting(100_000), { limits: { outputBytes: 100_000 } });
  assert(exact.ending.kind === "exited" && exact.ending.limit === undefined);
});

test("a job out of time is stopped by SIGTERM, and the ending names its time", async () => {
  const script = "trap 'echo bye; exit 3' TERM; while :; do sleep 0.02; done";
  const { ending, stdout } = await run(launcher, ["sh", "-c", script], { limits: { wallTimeMs: 300 } });
  assert(ending.kind === "exited" && ending.limit === "wall-time" && ending.code === 3);
  assert.equal(ending.stopAsked, false);
  assert(ending.endedAtMs - ending.startedAtMs >= 290);
  assert.equal(stdout, "bye\n");
});

test("a job out of time that ignores SIGTERM is killed with its family", async () => {
  const script = "trap '' TERM; setsid sleep 600 & while :; do sleep 0.05; done";
  const { ending } = await run(launcher, ["sh", "-c", script], { limits: { wallTimeMs: 50 } });
  assert(ending.kind === "signalled" && ending.limit === "wall-time" && ending.signal === 9);
});

test("a job that ignores SIGXCPU is killed, and the ending names its CPU time", async () => {
  const { ending } = await run(launcher, ["sh", "-c", "trap '' XCPU; while :; do :; done"], {
    limits: { cpuSeconds: 1 },
  });
  assert(ending.kind === "signalled" && ending.signal === 9 && ending.limit === "cpu-seconds");
});

test("a request narrows a ceiling of the launcher and never widens it; a limit that is none is refused", async () => {
  const ceilings = { openFiles: 32, wallTimeMs: 60_000 };
  const options = { root, shimPath, account: currentAccount(), clock: systemClock, ceilings };
  const narrow = await Launcher.open(options);
  const limits = { openFiles: 64, wallTimeMs: 5_000, cpuSeconds: 7 };
  const { launch, stdout } = await run(narrow, ["sh", "-c", "ulimit -n"], { limits });
  assert.deepEqual(launch.spec.limits, { openFiles: 32, wallTimeMs: 5_000, cpuSeconds: 7 });
  assert.equal(stdout, "32\n");
  await assert.rejects(run(narrow, ["true"], { limits: { openFiles: 0 } }), { code: "launch_invalid" });
  assert.deepEqual((await run(launcher, ["true"])).launch.spec.limits, { outputBytes: 1024 ** 3 });
});

test("a pump keeps the newest output in files of a bounded size, and counts and hashes all of it", async () => {
  const { ending, launch } = await run(launcher, counting(10_000), { output: pump });
  assert(ending.kind === "exited" && ending.stdoutBytes === 10_000);
  const names = (await fs.readdir(launch.directory)).filter((name) => name.startsWith("stdout")).sort();
  assert.deepEqual(names, ["stdout", "stdout.1", "stdout.2"]);
  const kept = await Promise.all(
    names.toReversed().map((name) => fs.readFile(path.join(launch.directory, name), "utf8")),
  );
  assert.deepEqual(
    kept.map((text) => text.length),
    [1024, 1024, 10_000 % 1024],
  );
  const all = (await run(launcher, counting(10_000))).stdout;
  assert(all.endsWith(kept.join("")));
  assert.equal(ending.stdoutSha256, hashOf(all));
});

test("a pump with one file begins it anew when it is full", async () => {
  const { ending, stdout, launch } = await run(launcher, counting(5000), { output: { ...pump, files: 1 } });
  assert(ending.kind === "exited" && ending.stdoutBytes === 5000);
  assert.equal(stdout.length, 5000 % 1024);
  assert(!(await fs.readdir(launch.directory)).includes("stdout.1"));
});

test("a pump carries what is written at once, ends with a chatty family, and waits for no stranger that holds its pipe", async () => {
  const script =
    "echo $$; setsid sh -c 'while :; do echo noise >&2; done' & until [ -e go ]; do sleep 0.02; done; exit 6";
  const launch = await start(launcher, ["sh", "-c", script], { output: { ...pump, fileBytes: 64 * 1024 } });
  const { stdout, work } = pathsIn(launch.directory);
  const pid = await lineFrom(stdout);
  await using stranger = await fs.open(`/proc/${pid}/fd/1`, "w");
  await fs.writeFile(path.join(work, "go"), "");
  assert.equal(describeEnding(await endingOf(launcher, launch)), "exited with code 6");
  assert(stranger.fd > 2);
});
