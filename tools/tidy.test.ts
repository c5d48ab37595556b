// SPDX-License-Identifier: Apache-2.0
// Each house rule catches its fault once in a small tree, at its place and with what to do; a clean tree passes.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { findProblems, formatProblem } from "./tidy.ts";
import { viewsOf } from "./tidy/lexer.ts";

const HEAD = "// SPDX-License-Identifier: Apache-2.0\n// What it is for.\n\n";
const TABLE = `${HEAD}export const errorTable = {\n  lost: 1,\n  later: 1, // reserved: for a part to come\n} as const;\n`;

const clean: Readonly<Record<string, string>> = {
  "src/DEPS": "# Who may import whom.\nstd: -\nprotocol: std\nbin: everything\n",
  "src/protocol/errors.ts": TABLE,
  "src/std/clock.ts": `${HEAD}export const now = (): number => Date.now();\n`,
  "src/bin/main.ts": `${HEAD}import { now } from "../std/clock.ts";\nif (now() === 0) throw new Failure("lost", process.argv[0]);\n`,
  "tests/kit/wait.ts": `${HEAD}setTimeout(() => undefined, 1);\n`,
  "migrations/0001_first.sql": "-- SPDX-License-Identifier: Apache-2.0\n-- The role holdfast_service.\n",
  ".ci/run": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n# Runs it.\n",
  "node_modules/utils/index.js": "module.exports = 1;\n",
};

/** The problems of the clean tree with these files on top, as printed. */
function problemsWith(t: TestContext, files: Readonly<Record<string, string>>): readonly string[] {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "tidy-"));
  t.after(() => fs.rmSync(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries({ ...clean, ...files })) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), text);
  }
  return findProblems(root).map(formatProblem);
}

test("a clean tree passes", (t) => {
  assert.deepEqual(problemsWith(t, {}), []);
});

const long = `${HEAD}${"export {};\n".repeat(400)}`;
const faults: readonly [claim: string, files: Record<string, string>, problem: RegExp][] = [
  ["no licence line", { "src/std/a.ts": "// What it is for.\n" }, /^src\/std\/a\.ts:1: no licence line; begin with /],
  [
    "no header comment",
    { "src/std/a.ts": "// SPDX-License-Identifier: Apache-2.0\n\nexport {};\n" },
    /^src\/std\/a\.ts:2: no header comment; /,
  ],
  [
    "no header in a shell script",
    { "tools/a.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\nexit\n" },
    /^tools\/a\.sh:3: no header/,
  ],
  [
    "a page that imports a server's folder",
    {
      "src/DEPS": `${clean["src/DEPS"]}db: std\nweb: std protocol\n`,
      "src/db/pool.ts": `${HEAD}export const pool = 1;\n`,
      "web/src/page.ts": `${HEAD}import { pool } from "../../src/db/pool.ts";\nif (pool === 1) fetch("/");\n`,
    },
    /^web\/src\/page\.ts:4: web imports db \(src\/db\/pool\.ts\); /,
  ],
  ["a long file", { "src/std/a.ts": long }, /^src\/std\/a\.ts:401: 403 lines, more than 400; split it/],
  [
    "a file name that says nothing",
    { "src/std/string-utils.ts": HEAD },
    /^src\/std\/string-utils\.ts:1: "utils" says nothing/,
  ],
  [
    "a directory name that says nothing",
    { "src/std/helpers/a.ts": HEAD },
    /^src\/std\/helpers:1: "helpers" says nothing/,
  ],
  [
    "a class name that says nothing",
    { "src/std/a.ts": `${HEAD}class JobManager {}\n` },
    /^src\/std\/a\.ts:4: class JobManager; /,
  ],
  ["a file name in camel case", { "src/std/aB.ts": HEAD }, /^src\/std\/aB\.ts:1: "aB\.ts" is not kebab-case/],
  ["a barrel", { "src/std/a.ts": `${HEAD}export { now } from "./clock.ts";\n` }, /^src\/std\/a\.ts:1: only re-exports/],
  ["a default export", { "src/std/a.ts": `${HEAD}export default 1;\n` }, /^src\/std\/a\.ts:4: default export; /],
  [
    "an import that DEPS does not allow",
    { "src/std/a.ts": `${HEAD}import "../protocol/errors.ts";\n` },
    /^src\/std\/a\.ts:4: std imports protocol .*src\/DEPS/,
  ],
  [
    "a dynamic import that DEPS does not allow",
    { "src/std/a.ts": `${HEAD}await import("../protocol/errors.ts");\n` },
    /^src\/std\/a\.ts:4: std imports protocol/,
  ],
  ["an import of bin", { "src/std/a.ts": `${HEAD}import "../bin/main.ts";\n` }, /^src\/std\/a\.ts:4: std imports bin/],
  [
    "an import of tests",
    { "src/std/a.ts": `${HEAD}import "../../tests/kit/wait.ts";\n` },
    /^src\/std\/a\.ts:4: src imports tests\/kit/,
  ],
  ["a folder without a line in DEPS", { "src/new/a.ts": HEAD }, /^src\/new:1: has no line in src\/DEPS; add one/],
  [
    "a line of DEPS that is none",
    { "src/DEPS": `${clean["src/DEPS"]}std = -\n` },
    /^src\/DEPS:5: not `folder: folders`/,
  ],
  [
    "an import cycle inside a folder",
    {
      "src/std/a.ts": `${HEAD}import type { B } from "./b.ts";\nexport type A = B;\n`,
      "src/std/b.ts": `${HEAD}import type { A } from "./a.ts";\nexport type B = A;\n`,
    },
    /^src\/std\/b\.ts:4: import cycle: src\/std\/a\.ts → src\/std\/b\.ts → src\/std\/a\.ts/,
  ],
  [
    "the environment outside bin",
    { "src/std/a.ts": `${HEAD}export const a = process.env["A"];\n` },
    /^src\/std\/a\.ts:4: process\.env outside src\/bin/,
  ],
  [
    "a signal handler outside bin",
    { "src/std/a.ts": `${HEAD}process.on("SIGTERM", () => 1);\n` },
    /^src\/std\/a\.ts:4: process\.on outside src\/bin/,
  ],
  [
    "ambient time outside std",
    { "src/protocol/a.ts": `${HEAD}export const a = Date.now();\n` },
    /^src\/protocol\/a\.ts:4: Date\.now\(\) reads ambient/,
  ],
  [
    "a Date of now",
    { "src/protocol/a.ts": `${HEAD}export const a = new Date();\n` },
    /^src\/protocol\/a\.ts:4: new Date\(\) reads ambient/,
  ],
  [
    "chance outside std",
    { "src/protocol/a.ts": `${HEAD}export const a = \`\${Math.random()}\`;\n` },
    /^src\/protocol\/a\.ts:4: Math\.random\(\) reads ambient/,
  ],
  [
    "printing in the product",
    { "src/std/a.ts": `${HEAD}console.log(1);\n` },
    /^src\/std\/a\.ts:4: console\.log in the product/,
  ],
  [
    "an error code that is not in the table",
    { "src/std/a.ts": `${HEAD}throw new Failure("odd", "x");\n` },
    /^src\/std\/a\.ts:4: the code "odd" is not in the table/,
  ],
  [
    "an error code that nothing uses",
    { "src/protocol/errors.ts": TABLE.replace("lost: 1,", "lost: 1,\n  idle: 1,") },
    /^src\/protocol\/errors\.ts:6: nothing in src uses the code "idle"/,
  ],
  [
    "a reserved code that is used",
    { "src/std/a.ts": `${HEAD}throw new Failure("later", "x");\n` },
    /^src\/protocol\/errors\.ts:6: the code "later" is used, but/,
  ],
  [
    "a skipped test",
    { "tests/a.test.ts": `${HEAD}test("a", { skip: true }, () => {});\n` },
    /^tests\/a\.test\.ts:4: "skip:" leaves a test out/,
  ],
  [
    "a sleep in a test",
    { "src/std/a.test.ts": `${HEAD}await sleep(5);\n` },
    /^src\/std\/a\.test\.ts:4: sleep\(…\) waits for time/,
  ],
  [
    "an allowance without a reason",
    { "src/std/a.test.ts": `${HEAD}// tidy-allow wait: it ends with the test\nawait sleep(5);\n// tidy-allow wait\n` },
    /^src\/std\/a\.test\.ts:6: an allowance without a reason/,
  ],
  [
    "an allowance that nothing needs",
    { "src/std/a.test.ts": `${HEAD}// tidy-allow wait: no more\n` },
    /^src\/std\/a\.test\.ts:4: allows "wait", which nothing here needs/,
  ],
  [
    "an allowance of what has no exceptions",
    { "src/std/a.ts": `${HEAD}// tidy-allow cycle: please\n` },
    /^src\/std\/a\.ts:4: "cycle" cannot be allowed/,
  ],
];

for (const [claim, files, problem] of faults) {
  test(`catches ${claim}, once`, (t) => {
    const problems = problemsWith(t, files);
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0] ?? "", problem);
  });
}

test("an allowance with a reason covers its own line and the next, not the one after", (t) => {
  const text = `${HEAD}// tidy-allow wait: it ends with the test\nawait sleep(5);\nawait sleep(6);\n`;
  assert.deepEqual(
    problemsWith(t, { "src/std/a.test.ts": text }).map((problem) => problem.slice(0, 20)),
    ["src/std/a.test.ts:6:"],
  );
});

test("what stands in comments, strings, templates and regular expressions is no code", (t) => {
  const text = `${HEAD}/* process.env */ // Date.now()
export const a = ["process.env", 'import "../bin/main.ts"', \`process.exit \${"Date.now()"} process.argv\`, /["'\`]process.env/];
export const b = 4 / 2; // "
export const c = \`\${{ a: "}" }} console.log \${\`process.env\`}\`;
`;
  assert.deepEqual(problemsWith(t, { "src/std/a.ts": text }), []);
});

test("the views keep every position, in each file of this checkout", () => {
  const directory = fileURLToPath(new URL("tidy", import.meta.url));
  for (const name of fs.readdirSync(directory)) {
    const text = fs.readFileSync(path.join(directory, name), "utf8");
    const { withoutComments, bare } = viewsOf(text);
    for (const view of [withoutComments, bare]) {
      assert.equal(view.length, text.length, name);
      assert.deepEqual(
        [...view.matchAll(/\n/g)].map((match) => match.index),
        [...text.matchAll(/\n/g)].map((match) => match.index),
        name,
      );
    }
    assert.equal(/[A-Za-z]/.test(bare.split("\n", 2).join("")), false, `${name}: its header is blanked`);
  }
});
