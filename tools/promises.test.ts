// SPDX-License-Identifier: Apache-2.0
// The promise table of ARCHITECTURE.md names tests: each of them must exist under exactly that name.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

test("every test that the promise table names exists, and every promise has a row", () => {
  const sources = fs
    .globSync(["tests/**/*.test.ts", "src/**/*.test.ts"], { cwd: root })
    .map((file) => fs.readFileSync(`${root}/${file}`, "utf8"));
  const names = new Set(
    sources.flatMap((source) => [...source.matchAll(/^test\(\s*"((?:[^"\\]|\\.)*)"/gm)].map((match) => match[1])),
  );
  const rows = fs
    .readFileSync(`${root}/ARCHITECTURE.md`, "utf8")
    .split("\n")
    .filter((line) => /^\| P\d+ \|/.test(line));
  assert.deepEqual(
    rows.map((row) => /^\| (P\d+)/.exec(row)?.[1]),
    Array.from({ length: 13 }, (_, index) => `P${index + 1}`),
  );
  for (const row of rows) {
    const named = [...(row.split("|").at(-2) ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1]);
    assert.ok(named.length > 0 || row.includes("*not yet*"), row);
    for (const name of named) assert.ok(names.has(name), `no test is named "${name}"`);
  }
});
