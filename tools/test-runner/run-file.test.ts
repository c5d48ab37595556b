// SPDX-License-Identifier: Apache-2.0
// The runner tells the truth about a test file: only what ran and passed counts as passed, and nothing stays behind.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { endText, fileText, plain } from "./report.ts";
import { runFile } from "./run-file.ts";
import type { FileResult } from "./tally.ts";

async function runText(t: TestContext, text: string, namePattern?: string): Promise<FileResult> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "runner-"));
  t.after(() => fs.rmSync(root, { recursive: true, force: true }));
  fs.writeFileSync(path.join(root, "a.test.mjs"), `import { before, describe, test } from "node:test";\n${text}`);
  // Without it node:test believes to be inside a file that it runs itself, and runs nothing.
  const { NODE_TEST_CONTEXT: context, ...env } = process.env;
  delete process.env["NODE_TEST_CONTEXT"];
  t.after(() => (process.env["NODE_TEST_CONTEXT"] = context));
  const options = { root, file: "a.test.mjs", directory: path.join(root, "t"), env, signal: t.signal };
  return runFile(namePattern === undefined ? options : { ...options, namePattern });
}

const shown = ({ results }: FileResult): readonly string[] =>
  results.map(
    ({ name, isPassed, error }) =>
      `${isPassed ? "+" : "-"} ${name}${error === undefined ? "" : `: ${error.split("\n")[0]}`}`,
  );

test("counts leaves only: neither suites nor tests with tests inside", async (t) => {
  const result = await runText(
    t,
    `describe("s", () => { test("a", () => {}); test("b", async (t) => { await t.test("c", () => {}); await t.test("d", () => { throw new Error("no"); }); }); });
     test("e", () => {});`,
  );
  assert.deepEqual(shown(result), ["+ s > a", "+ s > b > c", "- s > b > d: Error: no", "+ e"]);
});

test("a skipped test and one to do count as failed", async (t) => {
  const result = await runText(t, `test.skip("a", () => {}); test.todo("b", () => {});`);
  assert.deepEqual(
    result.results.map(({ isPassed }) => isPassed),
    [false, false],
  );
});

test("a failing hook fails its suite and the tests in it", async (t) => {
  const result = await runText(
    t,
    `describe("s", () => { before(() => { throw new Error("hook"); }); test("a", () => {}); });`,
  );
  assert.deepEqual(
    result.results.map(({ name, isPassed }) => [name, isPassed]),
    [
      ["s > a", false],
      ["s", false],
    ],
  );
});

test("a file that crashes, that ends early with exit code 0, or that holds no test has failed", async (t) => {
  const crash = await runText(
    t,
    `test("a", () => {}); setImmediate(() => process.exit(3)); test("b", () => new Promise(() => setTimeout(() => {}, 1e6)));`,
  );
  assert.match(shown(crash).at(-1) ?? "", /^- the file itself: it ended with exit code 3/);
  const early = await runText(
    t,
    `test("a", () => {}); setImmediate(() => process.exit(0)); test("b", () => new Promise(() => setTimeout(() => {}, 1e6)));`,
  );
  assert.match(shown(early).at(-1) ?? "", /^- the file itself: it ended before all of its tests did/);
  assert.deepEqual(shown(await runText(t, "")), ["- the file itself: it holds no test"]);
});

test("a pattern chooses tests by name, and a file without one is then empty, not failed", async (t) => {
  assert.deepEqual(shown(await runText(t, `test("apple", () => {}); test("pear", () => {});`, "pear")), ["+ pear"]);
  assert.deepEqual(shown(await runText(t, `test("apple", () => {});`, "plum")), []);
});

for (const [way, options] of [
  ["with the environment of the test", "{}"],
  ["with an empty environment, but a place of the test in its arguments", "{ env: {} }"],
] as const) {
  test(`a process that is left behind ${way} is named, counted as a failure and ended`, async (t) => {
    const result = await runText(
      t,
      `import { spawn } from "node:child_process";
       test("a", () => { spawn("/bin/sh", ["-c", "while :; do /bin/sleep 1; done", process.env.TMPDIR + "/x"], { detached: true, stdio: "ignore", ...${options} }).unref(); });`,
    );
    const [passed, left] = result.results;
    assert.equal(passed?.isPassed, true);
    const pid = /it left process (\d+) running: \/bin\/sh/.exec(left?.error ?? "")?.[1];
    assert.notEqual(pid, undefined, shown(result).join("\n"));
    assert.equal(fs.existsSync(`/proc/${pid}/cwd`), false);
  });
}

test("the report repeats each failure in full with what the file wrote, and ends with the counts alone", () => {
  const failure = { name: "a claim", isPassed: false, durationMs: 5, error: "Error: no\n  at there" };
  const success = { name: "another", isPassed: true, durationMs: 5 };
  const file: FileResult = { file: "a.test.ts", results: [success, failure], durationMs: 1500, output: "hello\n" };
  assert.equal(fileText(file, plain), "a.test.ts 1.5 s\n  ✔ another\n  ✖ a claim: Error: no\n");
  const text = endText([file], plain);
  assert.match(text, /✖ a\.test\.ts: a claim\n {4}Error: no\n {6}at there\n/);
  assert.match(text, /What a\.test\.ts wrote:\n {4}\| hello\n/);
  assert.equal(text.split("\n").slice(-2).join("\n"), "1 passed, 1 failed\n");
});
