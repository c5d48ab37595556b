// SPDX-License-Identifier: Apache-2.0
// The table of error codes is closed both ways: each code that is thrown is in it, and each code in it is used.
// A code that is kept for a part to come says so on its line: `// reserved: why`.

import { folderOf, isTest, lineOf, type Problem, type SourceFile, type Tree } from "./tree.ts";

const TABLE = "src/protocol/errors.ts";
const ROW = /^ {2}([a-z][a-z0-9_]*):(.*)$/gm;
const THROWN = /\bnew\s+Failure\(\s*"([^"]*)"/g;

type Row = { readonly line: number; readonly isReserved: boolean };

export function checkFailureCodes(tree: Tree): readonly Problem[] {
  const table = tree.files.find((file) => file.path === TABLE);
  if (table === undefined) return [];
  const rows = rowsOf(table);
  const product = tree.files.filter((file) => folderOf(file.path) !== undefined && !isTest(file) && file !== table);
  const used = new Set(
    product.flatMap((file) =>
      [...file.withoutComments.matchAll(/["'`]([a-z][a-z0-9_]*)["'`]/g)].map((match) => match[1]),
    ),
  );
  return [
    ...product.flatMap((file) => unknownCodes(file, rows)),
    ...[...rows].flatMap(([code, row]) => checkUse(code, row, used)),
  ];
}

/** Comments count here: `// reserved` is one. The keys of the one exported object are the lines that are indented by two. */
function rowsOf(table: SourceFile): ReadonlyMap<string, Row> {
  const from = table.text.indexOf("export const errorTable");
  if (from < 0) return new Map();
  const body = table.text.slice(from, table.text.indexOf("\n}", from));
  return new Map(
    [...body.matchAll(ROW)].map((match) => [
      match[1] ?? "",
      { line: lineOf(table.text, from + match.index), isReserved: /\/\/ reserved: \S/.test(match[2] ?? "") },
    ]),
  );
}

function unknownCodes(file: SourceFile, rows: ReadonlyMap<string, Row>): readonly Problem[] {
  return [...file.withoutComments.matchAll(THROWN)]
    .filter((match) => !rows.has(match[1] ?? ""))
    .map((match) => ({
      rule: "code",
      path: file.path,
      line: lineOf(file.text, match.index),
      what: `the code "${match[1]}" is not in the table`,
      fix: `use one that is, or add a row (${TABLE})`,
    }));
}

function checkUse(code: string, { line, isReserved }: Row, used: ReadonlySet<string | undefined>): readonly Problem[] {
  if (used.has(code) !== isReserved) return [];
  const what = isReserved
    ? `the code "${code}" is used, but marked as reserved`
    : `nothing in src uses the code "${code}"`;
  const fix = isReserved
    ? `take the mark away (${TABLE})`
    : `delete the row, or mark it \`// reserved: why\` (${TABLE})`;
  return [{ rule: "code", path: TABLE, line, what, fix }];
}
