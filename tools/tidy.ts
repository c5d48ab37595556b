// SPDX-License-Identifier: Apache-2.0
// The house rules as a program: what style.md and design.md say and no other linter checks. Run by npm run check.
// Usage: node tools/tidy.ts [ROOT]

import path from "node:path";
import { fileURLToPath } from "node:url";
import { withoutAllowed } from "./tidy/allowances.ts";
import { bans } from "./tidy/bans.ts";
import { checkFailureCodes } from "./tidy/failure-codes.ts";
import { checkFiles } from "./tidy/files.ts";
import { checkImports } from "./tidy/imports.ts";
import { findBanned, type Problem, readTree } from "./tidy/tree.ts";

/** All problems below a root, by place. */
export function findProblems(root: string): readonly Problem[] {
  const tree = readTree(root);
  const all = [...checkFiles(tree), ...checkImports(tree), ...findBanned(tree, bans), ...checkFailureCodes(tree)];
  return withoutAllowed(tree, all).toSorted((a, b) => (a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1));
}

export function formatProblem({ path: file, line, what, fix }: Problem): string {
  return `${file}:${line}: ${what}; ${fix}`;
}

if (import.meta.main) {
  const problems = findProblems(path.resolve(process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url))));
  for (const problem of problems) process.stdout.write(`${formatProblem(problem)}\n`);
  process.stdout.write(problems.length === 0 ? "tidy: nothing to do\n" : `tidy: ${problems.length} to do\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
