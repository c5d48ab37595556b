// SPDX-License-Identifier: Apache-2.0
// An exception is written where it is made: `// tidy-allow RULE: why`, on the line or on the one above it.
// Rule: an allowance without a reason, or that nothing needs any more, is itself a problem.

import { isCode, lineOf, type Problem, type Tree } from "./tree.ts";

/** What a line may allow; the rules about structure have no exceptions. */
const ALLOWABLE = new Set(["wait", "global", "ambient", "print"]);
const MARK = /\/\/ tidy-allow ([a-z-]+)(?:: (\S[^\n]*))?/g;

export function withoutAllowed(tree: Tree, problems: readonly Problem[]): readonly Problem[] {
  const left = new Set(problems);
  const faults: Problem[] = [];
  for (const file of tree.files.filter(isCode)) {
    for (const match of file.text.matchAll(MARK)) {
      // In a string or inside another comment it is text about a mark, not a mark.
      if (file.withoutComments[match.index] !== " ") continue;
      const [, rule = "", reason] = match;
      const line = lineOf(file.text, match.index);
      const fault = (what: string): void => {
        faults.push({
          rule: "allow",
          path: file.path,
          line,
          what,
          fix: "write `// tidy-allow RULE: why`, or take it away (tools/tidy/allowances.ts)",
        });
      };
      const covered = problems.filter(
        (problem) =>
          problem.path === file.path && problem.rule === rule && (problem.line === line || problem.line === line + 1),
      );
      if (!ALLOWABLE.has(rule)) fault(`"${rule}" cannot be allowed; what can: ${[...ALLOWABLE].join(", ")}`);
      else if (reason === undefined) fault("an allowance without a reason");
      else if (covered.length === 0) fault(`allows "${rule}", which nothing here needs`);
      else for (const problem of covered) left.delete(problem);
    }
  }
  return [...left, ...faults];
}
