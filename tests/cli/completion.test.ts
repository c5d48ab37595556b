// SPDX-License-Identifier: Apache-2.0
// The completion scripts: valid shell, made from the command tree, and bash really completes with them.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { commandsOf, createTree } from "./kit.ts";

async function script(shell: string): Promise<string> {
  return (await createTree().run("completion", shell)).stdout;
}

/** What bash offers for the last of these words. */
function complete(source: string, words: readonly string[]): readonly string[] {
  const ask = `${source}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync("bash", ["--norc", "-u", "-c", ask, "bash", "holdfast", ...words], {
    encoding: "utf8",
  });
  assert.deepEqual([status, stderr], [0, ""]);
  return stdout.split("\n").filter((line) => line !== "");
}

test("the bash script is valid shell, and so is the one for zsh as far as bash can tell", async () => {
  for (const shell of ["bash", "zsh"]) {
    const { status, stderr } = spawnSync("bash", ["-n"], { input: await script(shell), encoding: "utf8" });
    assert.deepEqual([status, stderr], [0, ""]);
  }
});

test("bash offers every command at its place", async () => {
  const source = await script("bash");
  for (const { path, command } of commandsOf(createTree().program)) {
    const offered = complete(source, [...path, ""]);
    for (const child of command.commands)
      assert.ok(offered.includes(child.name()), `${path.join(" ")} ${child.name()}`);
    for (const option of command.options)
      if (!option.hidden) assert.ok(offered.includes(option.long ?? "?"), `${path.join(" ")} ${option.flags}`);
  }
});

test("bash narrows what was begun, and offers a command's options behind its values", async () => {
  const source = await script("bash");
  assert.deepEqual(complete(source, ["jo"]), ["job"]);
  assert.deepEqual(complete(source, ["job", "ca"]), ["cancel"]);
  assert.ok(complete(source, ["node", "show", "anna", "--"]).includes("--json"));
  assert.ok(complete(source, ["job", "run", "--env", "A=1", "--mem"]).includes("--memory"));
});

test("behind -- the command belongs to the job: nothing of ours is offered", async () => {
  assert.deepEqual(complete(await script("bash"), ["job", "run", "--", ""]), []);
});

test("the fish script names every command", async () => {
  const source = await script("fish");
  for (const { path } of commandsOf(createTree().program))
    for (const word of path) assert.ok(source.includes(word), word);
});

test("an unknown shell is refused with those that are known", async () => {
  const { exitCode, stderr } = await createTree().run("completion", "tcsh");
  assert.notEqual(exitCode, 0);
  assert.match(stderr, /bash, zsh, fish/);
});
