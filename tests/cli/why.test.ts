// SPDX-License-Identifier: Apache-2.0
// What a job needs, said in options, and why it is where it is, as people and programs read it.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobWhy } from "../../src/protocol/placement-schema.ts";
import { createWorld } from "../kit/world.ts";
import { assertClearFault, homeOf } from "./kit.ts";

test("needs are said in options, and job why tells what each node says of them, for people and as JSON", async (t) => {
  const world = await createWorld(t, { heartbeatMs: 600_000 });
  const home = homeOf(t, world);
  await world.node("anna");
  const args = ["--gpu-memory", "40GiB", "--host-part", "16GiB", "--paths", "split,gpu", "--gpus", "2", "--json"];
  const made = await home.run(["job", "submit", ...args, "--", "true"]);
  assert.equal(made.code, 0, made.stderr);
  const { id, requires } = JSON.parse(made.stdout) as { id: string; requires: object };
  const needs = { needFullBytes: 40 * 2 ** 30, needHostBytes: 16 * 2 ** 30, paths: ["gpu", "split"], gpus: 2 };
  assert.deepEqual(requires, needs);
  const { stdout, code } = await home.run(["job", "why", id]);
  assert.equal(code, 0);
  assert.match(stdout, /^answer +blocked: no node fits: needs a GPU: on anna, it has none$/m);
  assert.match(stdout, /^before it +0$/m);
  assert.match(
    stdout,
    /^NODE +STATE +VERDICT +NOW +WHY\nanna +online +gpu-missing +no +needs a GPU: on anna, it has none$/m,
  );
  const why = JSON.parse((await home.run(["job", "why", "--json", id])).stdout) as JobWhy;
  assert.deepEqual([why.answer, why.nodes.map((node) => node.verdict), why.holders], ["no-node", ["gpu-missing"], []]);
  const bad = await home.run([
    "job",
    "submit",
    "--paths",
    "fast",
    "--cpu-memory",
    "1GiB",
    "--arch",
    "z80",
    "--",
    "true",
  ]);
  assert.equal(bad.code, 64);
  assertClearFault(bad.stderr);
  for (const part of [
    "--arch: must be x64",
    "--paths: is a list of gpu, split, cpu",
    "--cpu-memory: is said of a job that gives --gpu-memory",
  ])
    assert.ok(bad.stderr.includes(part), `${part} in ${bad.stderr}`);
});
