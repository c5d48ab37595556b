// SPDX-License-Identifier: Apache-2.0
// An agent killed at random moments, again and again (HOLDFAST_TEST_ROUNDS, default 20): no job starts twice, every start that
// was acknowledged is known, and every launch directory gets a verdict that agrees with what really ran.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Launcher } from "../../src/launcher/launcher.ts";
import { systemClock } from "../../src/std/clock.ts";
import { eventually, makeRoot, openLauncher, removeRoot } from "./kit.ts";

const starterMain = fileURLToPath(new URL("starter-main.ts", import.meta.url));
const rounds = Number(process.env["HOLDFAST_TEST_ROUNDS"] ?? 20);
const KILL_WITHIN_MS = 60;

const numberIn = (launchId: string): number => Number(/^attempt-job_(\d+)-1$/.exec(launchId)?.[1]);

/** One life of an agent; the numbers that it acknowledged. */
async function liveAndDie(root: string, first: number): Promise<readonly number[]> {
  const agent = spawn(process.execPath, [starterMain, root, String(first)], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  agent.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await once(agent.stdout, "data");
  // The moment is what varies: anywhere within a few launches.
  // tidy-allow wait: the moment of the kill is the random input of this test
  await systemClock.sleep(Math.random() * KILL_WITHIN_MS);
  const closed = once(agent, "close");
  agent.kill("SIGKILL");
  await closed;
  return [...said.matchAll(/^(\d+)$/gm)].map((match) => Number(match[1]));
}

async function verdictOf(launcher: Launcher, launchId: string): Promise<string> {
  return await eventually(`a verdict for ${launchId}`, async () => {
    const { kind } = await launcher.adopt(launchId);
    return kind === "alive" ? undefined : kind;
  });
}

test(`an agent killed ${rounds} times starts nothing twice and loses nothing`, async () => {
  const root = await makeRoot();
  const launcher = await openLauncher(root);
  const ledger = path.join(root, "ledger");
  await fs.writeFile(ledger, "");
  const acknowledged: number[] = [];
  for (let round = 0; round < rounds; round++) {
    // Two back: a new life meets launches of the last one, as an agent that claims again would.
    const newest = Math.max(0, ...(await launcher.list()).map(numberIn));
    acknowledged.push(...(await liveAndDie(root, Math.max(0, newest - 2))));
  }
  const verdicts = new Map<number, string>();
  for (const launchId of await launcher.list()) verdicts.set(numberIn(launchId), await verdictOf(launcher, launchId));
  const ran = (await fs.readFile(ledger, "utf8"))
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);
  assert.equal(new Set(ran).size, ran.length, "no number twice");
  assert.deepEqual(
    acknowledged.filter((number) => verdicts.get(number) !== "ended"),
    [],
  );
  const ended = [...verdicts].flatMap(([number, verdict]) => (verdict === "ended" ? [number] : []));
  assert.deepEqual(
    ended.toSorted((a, b) => a - b),
    ran.toSorted((a, b) => a - b),
  );
  assert.deepEqual(
    [...new Set(verdicts.values())].filter((verdict) => verdict !== "ended" && verdict !== "not-started"),
    [],
  );
  await removeRoot(root);
});
