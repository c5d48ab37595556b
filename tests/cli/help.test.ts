// SPDX-License-Identifier: Apache-2.0
// The help of every command, walked over the tree: what it is for, and examples that are true.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "commander";
import { commandsOf, createTree } from "./kit.ts";

/** The lines behind "Example:" or "Examples:". */
function examplesOf(help: string): readonly string[] {
  const [, examples = ""] = help.split(/\nExamples?:\n/);
  return examples.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));
}

test("the help of every command says what it is for and ends with an example", async () => {
  for (const { path, command } of commandsOf(createTree().program)) {
    const { stdout, exitCode } = await createTree().run(...path, "--help");
    const name = path.join(" ") || "holdfast";
    assert.equal(exitCode, 0, name);
    assert.notEqual(command.description(), "", `${name} does not say what it is for`);
    const examples = examplesOf(stdout);
    assert.ok(examples.length > 0, `${name} has no example`);
    assert.ok(stdout.trimEnd().endsWith(examples.at(-1) ?? "?"), `${name} does not end with its example`);
  }
});

test("every option of every command says what it does, and help lines stay within 100 columns", async () => {
  for (const { path, command } of commandsOf(createTree().program)) {
    for (const option of command.options) {
      if (!option.hidden) assert.notEqual(option.description, "", `${path.join(" ")} ${option.flags}`);
    }
    const { stdout } = await createTree().run(...path, "--help");
    const [text = ""] = stdout.split(/\nExamples?:\n/);
    for (const line of text.split("\n")) assert.ok(line.length <= 100, `${path.join(" ")}: ${line}`);
  }
});

test("the examples name commands and long options that exist", async () => {
  const { program } = createTree();
  for (const { path } of commandsOf(program)) {
    const { stdout } = await createTree().run(...path, "--help");
    for (const line of examplesOf(stdout)) {
      const words = line.split(/\s+/);
      const at = words.indexOf("holdfast");
      if (at >= 0) assertExists(program, words.slice(at + 1), line);
      else assert.equal(line.startsWith("npm start") || line.startsWith("source <("), true, line);
    }
  }
});

function assertExists(program: Command, words: readonly string[], line: string): void {
  let command = program;
  let hasOption = false;
  for (const word of words) {
    if (word === "--" || word === "<" || word.startsWith("<(")) break;
    const child = command.commands.find((one) => one.name() === word);
    if (child !== undefined) command = child;
    else if (word.startsWith("--")) {
      // A command with commands of its own may do something by itself: then no more of them follow.
      hasOption = true;
      assert.ok(
        command.options.some((option) => option.long === word),
        `${line}: ${command.name()} has no option ${word}`,
      );
    } else if (command.commands.length > 0 && !hasOption)
      assert.fail(`${line}: ${command.name()} has no command ${word}`);
  }
}

test("up, controller and agent pass on what was given and leave the rest to the programs", async () => {
  const { run, calls } = createTree();
  await run("up");
  await run("up", "--once", "--listen", "127.0.0.1:1", "--root", "/r");
  await run("controller", "--no-migrate", "--embedded");
  await run("agent", "--join", "http://c:1", "--slots", "3", "--stop-grace", "2s", "--lifeline");
  assert.deepEqual(calls, [
    {},
    { once: true, listen: "127.0.0.1:1", root: "/r" },
    { migrate: false, embedded: true },
    { join: "http://c:1", slots: 3, stopGraceMs: 2000, lifeline: true, onStop: "release" },
  ]);
});

test("what is hidden from help is hidden from completion too", async () => {
  const { stdout: help } = await createTree().run("agent", "--help");
  const { stdout: script } = await createTree().run("completion", "bash");
  for (const hidden of ["--lifeline", "--die-after-claim"]) {
    assert.ok(!help.includes(hidden) && !script.includes(hidden), hidden);
  }
});
