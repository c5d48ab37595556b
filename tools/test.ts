// SPDX-License-Identifier: Apache-2.0
// npm test: gets what the tests need, runs every test file in a process of its own, and leaves nothing behind.
// Usage: node tools/test.ts [PATH-PART ...] [--name PATTERN]. Exit 1 when a test failed or none ran, 130 after Ctrl-C.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ensureNeeds, systemNeeds } from "./system-needs.ts";
import { endLeftovers } from "./test-runner/leftovers.ts";
import { coloured, endText, fileText, plain } from "./test-runner/report.ts";
import { runFile } from "./test-runner/run-file.ts";
import { startServer } from "./test-runner/server.ts";
import type { FileResult } from "./test-runner/tally.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
/** One more than processors: most files wait for a while, for a lease, a heartbeat or a page. */
const FILES_AT_ONCE = os.availableParallelism() + 1;
const INTERRUPTED = 130;

const paint = process.stdout.isTTY ? coloured : plain;
const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** The test files whose path contains one of the parts; those of whole processes first, they take longest. */
function findTests(parts: readonly string[]): readonly string[] {
  const tests = fs.globSync(["tests/**/*.test.ts", "src/**/*.test.ts", "tools/**/*.test.ts"], { cwd: root });
  return tests
    .filter((file) => process.getuid?.() === 0 || !isForRoot(file))
    .filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)))
    .toSorted((a, b) => Number(b.startsWith("tests/")) - Number(a.startsWith("tests/")) || (a < b ? -1 : 1));
}

/** What only root may do, such as mounting a small disk; CI runs as root. */
function isForRoot(file: string): boolean {
  return file.endsWith("-as-root.test.ts");
}

type RunOptions = {
  readonly files: readonly string[];
  readonly namePattern: string | undefined;
  readonly signal: AbortSignal;
};

async function runAll({ files, namePattern, signal }: RunOptions): Promise<readonly FileResult[]> {
  // Everybody may pass through: as root, PostgreSQL runs under an account of its own.
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "hft-"));
  fs.chmodSync(directory, 0o755);
  process.env["TMPDIR"] = directory;
  // A thousand processes start in a run: each compiles only what none before it has.
  process.env["NODE_COMPILE_CACHE"] = path.join(directory, "compile-cache");
  await using stack = new AsyncDisposableStack();
  stack.defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  const finished: FileResult[] = [];
  {
    await using server = files.some((file) => file.startsWith("tests/")) ? await startServer() : undefined;
    const env = { ...process.env, ...server?.env };
    const waiting = [...files.entries()];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) {
        const [index, file] = next;
        const own = path.join(directory, String(index));
        const options = { root, file, directory: own, env, signal };
        const result = await runFile(namePattern === undefined ? options : { ...options, namePattern });
        if (result.results.length > 0) say(fileText(result, paint));
        finished.push(result);
      }
    };
    await Promise.all(Array.from({ length: FILES_AT_ONCE }, work));
  }
  const left = await endLeftovers([`${directory}/`]);
  const results = left.map(({ identity, command }) => {
    const error = `process ${identity.pid} was left running: ${command}`;
    return { name: "nothing is left running", isPassed: false, durationMs: 0, error };
  });
  if (results.length > 0) finished.push({ file: "the whole run", results, durationMs: 0, output: "" });
  return finished;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { name: { type: "string" } } });
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());
  const needs = ensureNeeds(systemNeeds.filter((need) => need.purpose === "tests"));
  if (needs.say !== "") say(needs.say);
  const files = needs.isMet ? findTests(positionals) : [];
  if (process.getuid?.() !== 0)
    say("Not root: the files *-as-root.test.ts are left out (they mount disks); CI runs them.");
  if (needs.isMet && files.length === 0) say(`no test file matches ${positionals.join(" ")}`);
  const finished =
    files.length === 0 ? [] : await runAll({ files, namePattern: values.name, signal: interrupted.signal });
  if (interrupted.signal.aborted) say("Interrupted.");
  process.stdout.write(endText(finished, paint));
  if (interrupted.signal.aborted) return INTERRUPTED;
  const results = finished.flatMap((file) => file.results);
  return results.length > 0 && results.every((result) => result.isPassed) ? 0 : 1;
}

process.exitCode = await main();
