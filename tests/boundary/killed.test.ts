// SPDX-License-Identifier: Apache-2.0
// A node killed at random moments, again and again (HOLDFAST_TEST_ROUNDS, default 200), on the real disk with real processes: no
// job runs twice, and every start that it acknowledged is known to the next life.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/std/clock.ts";
import { until } from "../kit/until.ts";
import { directoryOf } from "./kit.ts";

const main = fileURLToPath(new URL("starter-main.ts", import.meta.url));
const rounds = Number(process.env["HOLDFAST_TEST_ROUNDS"] ?? 200);
/** Side by side: most of a life is start-up and waiting for the disk. */
const LANES = 4;
const KILL_WITHIN_MS = 80;

type Said = { readonly of: (what: string) => readonly number[]; readonly text: string };

/** One life, killed at a random moment: in its start-up, too. */
async function liveAndDie(root: string, first: number): Promise<Said> {
  const child = spawn(process.execPath, [main, root, String(first)], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  // Some are killed in their start-up, most behind one of their first starts.
  const starts = Math.floor(Math.random() * 4);
  const isFar = (): boolean => text.includes("up\n") && text.split("started ").length > starts;
  if (Math.random() < 0.9) await until("it is up", () => isFar() || child.exitCode !== null);
  // tidy-allow wait: the moment of the kill is the random input of this test
  await systemClock.sleep(Math.random() * KILL_WITHIN_MS);
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
  const of = (what: string): readonly number[] =>
    [...text.matchAll(new RegExp(`^${what} (\\d+)$`, "gm"))].map((match) => Number(match[1]));
  return { of, text };
}

/** So many lives after each other; how many starts were acknowledged. */
async function killAgainAndAgain(root: string, lives: number): Promise<number> {
  const ledger = path.join(root, "ledger");
  fs.mkdirSync(root);
  fs.writeFileSync(ledger, "");
  const open = new Set<number>();
  let next = 0;
  let acknowledged = 0;
  for (let life = 0; life <= lives; life++) {
    const said = await liveAndDie(root, next);
    assert.doesNotMatch(said.text, /untrusted| again /, said.text);
    const known = said.of("known");
    // A life that was killed before it said anything proves nothing about what it would have known.
    if (said.text.includes("up\n"))
      assert.deepEqual(
        [...open].filter((number) => !known.includes(number)),
        [],
        said.text,
      );
    for (const number of said.of("closing")) open.delete(number);
    for (const number of said.of("started")) open.add(number);
    acknowledged += said.of("started").length;
    next = Math.max(next, ...said.of("started"), ...known) + 1;
  }
  const ran = fs
    .readFileSync(ledger, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  assert.equal(new Set(ran).size, ran.length, "no number twice");
  assert.ok(ran.length >= acknowledged - open.size, `${ran.length} ran of ${acknowledged}`);
  return acknowledged;
}

test("P9: a node killed at random moments starts nothing twice, and every start that it acknowledged is known after the restart", async (t) => {
  const directory = directoryOf(t);
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    killAgainAndAgain(path.join(directory, `root-${lane}`), Math.ceil(rounds / LANES)),
  );
  const starts = (await Promise.all(lanes)).reduce((sum, each) => sum + each, 0);
  assert.ok(starts > rounds / 2, `${starts} starts in ${rounds} rounds`);
});
