// SPDX-License-Identifier: Apache-2.0
// One line becomes the arguments that a shell would make of its quotes, and nothing else of a shell happens in silence.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { splitCommand } from "../../web/src/jobs/split-command.ts";
import { draftedSubmission, emptyDraft } from "../../web/src/jobs/submission.ts";
import { shellLine } from "../../src/std/text.ts";

test("quotes and backslashes mean what they mean to a shell", () => {
  const lines = [`a b`, `'a b' c`, `"a b"c`, `a\\ b`, `"a\\"b" 'c\\d'`, `"" ''`, `"a\\nb"`, `  a   b  `, `a'b'"c"d`];
  for (const line of lines) {
    const { stdout } = spawnSync("sh", ["-c", `for word in ${line}; do printf '%s\\n' "$word"; done`], {
      encoding: "utf8",
    });
    assert.deepEqual(splitCommand(line).words, stdout.split("\n").slice(0, -1), line);
  }
});

test("every command that is written out as a line is split into itself again", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "grapheme" }), { minLength: 1 }), (command) => {
      assert.deepEqual(splitCommand(shellLine(command)), { words: command });
    }),
  );
});

test("what is not closed is named by its place, and what only a shell would do is said", () => {
  assert.match(splitCommand(`echo "a`).problem ?? "", /the " at 6 is not closed/);
  assert.match(splitCommand("echo \\").problem ?? "", /nothing to quote/);
  assert.match(splitCommand("a | b").warning ?? "", /No shell reads this: \| is passed as it is/);
  assert.equal(splitCommand("echo 'a | b'").warning, undefined);
});

test("only what was filled in is sent, and a number that would be rounded is refused at its field", () => {
  assert.deepEqual(draftedSubmission({ ...emptyDraft, command: "true" }), {
    faults: {},
    submission: { command: ["true"] },
  });
  const full = draftedSubmission({
    ...emptyDraft,
    command: "a",
    memory: "8GiB",
    retries: "2",
    timeLimit: "10m",
    input: "{}",
  });
  assert.deepEqual(full.submission, {
    command: ["a"],
    requires: { memoryBytes: 8 * 2 ** 30 },
    retry: { maxAttempts: 3, onFailure: true },
    timeLimitMs: 600_000,
    input: {},
  });
  const { faults } = draftedSubmission({ ...emptyDraft, command: "a", input: "[9007199254740993]" });
  assert.match(faults.input ?? "", /more digits than JSON numbers keep/);
});
