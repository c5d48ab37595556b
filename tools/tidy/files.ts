// SPDX-License-Identifier: Apache-2.0
// Rules about a file as a whole: licence line and header, length, its name, and that it is no mere list of re-exports.

import { isCode, type Problem, type SourceFile, type Tree } from "./tree.ts";

export const LINES_MAX = 400;

const SELF = "tools/tidy/files.ts";
const SPDX = /^(?:\/\/|#|--|\/\*) SPDX-License-Identifier: Apache-2\.0(?: \*\/)?$/;
const COMMENT = /^(?:\/\/|#|--|\/\*)\s*\S/;
const KEBAB = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.(?:test|config))?\.(?:ts|tsx|js|mjs)$/;
const EMPTY_WORDS = new Set(["util", "utils", "helper", "helpers", "manager", "managers", "service", "services"]);
const REEXPORT = /\bexport\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from\s+(["'])[^"']*\1\s*;?/g;

export function checkFiles(tree: Tree): readonly Problem[] {
  return [
    ...tree.files.flatMap((file) => [
      ...checkHeader(file),
      ...checkLength(file),
      ...checkName(file),
      ...checkContent(file),
    ]),
    ...tree.directories.flatMap((directory) => checkWords(directory)),
  ];
}

function checkHeader(file: SourceFile): readonly Problem[] {
  const lines = file.text.split("\n", 4);
  const first = lines[0]?.startsWith("#!") === true ? 1 : 0;
  if (!SPDX.test(lines[first] ?? "")) {
    const fix = `begin with "SPDX-License-Identifier: Apache-2.0" as a comment (${SELF})`;
    return [{ rule: "licence", path: file.path, line: first + 1, what: "no licence line", fix }];
  }
  if (COMMENT.test(lines[first + 1] ?? "")) return [];
  const fix = `say in 1 to 5 lines what the file is for and which rule holds in it (${SELF})`;
  return [{ rule: "header", path: file.path, line: first + 2, what: "no header comment", fix }];
}

function checkLength(file: SourceFile): readonly Problem[] {
  const lines = file.text.split("\n").length - 1;
  if (lines <= LINES_MAX || file.path === "migrations/schema.sql") return [];
  const fix = `split it by noun (${SELF})`;
  return [
    { rule: "length", path: file.path, line: LINES_MAX + 1, what: `${lines} lines, more than ${LINES_MAX}`, fix },
  ];
}

function checkName(file: SourceFile): readonly Problem[] {
  const name = file.path.slice(file.path.lastIndexOf("/") + 1);
  const problems = [...checkWords(file.path)];
  if (isCode(file) && !KEBAB.test(name)) {
    problems.push({
      rule: "name",
      path: file.path,
      line: 1,
      what: `"${name}" is not kebab-case`,
      fix: `rename it (${SELF})`,
    });
  }
  return problems;
}

/** The last part of a path only: a directory is reported once, not again for each file in it. */
function checkWords(path: string): readonly Problem[] {
  const words = path.slice(path.lastIndexOf("/") + 1).split(/[-._]/);
  const word = words.find((part) => EMPTY_WORDS.has(part));
  if (word === undefined) return [];
  return [
    { rule: "name", path, line: 1, what: `"${word}" says nothing`, fix: `name it by the noun it is about (${SELF})` },
  ];
}

function checkContent(file: SourceFile): readonly Problem[] {
  if (!isCode(file)) return [];
  const problems: Problem[] = [];
  const rest = file.withoutComments.replace(REEXPORT, "");
  if (rest.trim() === "" && rest.length !== file.withoutComments.length) {
    const fix = `import from the files themselves and delete it (${SELF})`;
    problems.push({ rule: "barrel", path: file.path, line: 1, what: "only re-exports", fix });
  }
  for (const match of file.bare.matchAll(/\bclass\s+(\w+(?:Utils?|Helpers?|Manager|Service))\b/g)) {
    const line = file.bare.slice(0, match.index).split("\n").length;
    problems.push({
      rule: "name",
      path: file.path,
      line,
      what: `class ${match[1]}`,
      fix: `name it by the noun it owns (${SELF})`,
    });
  }
  return problems;
}
