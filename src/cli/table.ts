// SPDX-License-Identifier: Apache-2.0
// Tables for people: aligned columns without borders.

import { stripVTControlCharacters } from "node:util";

export { ago, commandLine, visible } from "../std/text.ts";

const GAP = "  ";

/** Columns as wide as their widest cell; the last one is not padded. Cells may be coloured. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => visibleLength(row[column] ?? ""))));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === row.length - 1 ? cell : cell + " ".repeat((widths[column] ?? 0) - visibleLength(cell)),
      )
      .join(GAP)
      .trimEnd();
  return `${all.map(line).join("\n")}\n`;
}

function visibleLength(text: string): number {
  return Array.from(new Intl.Segmenter().segment(stripVTControlCharacters(text))).length;
}

/** Lines of "name  value", aligned. */
export function fields(rows: readonly (readonly [string, string | undefined | null])[]): string {
  const shown = rows.filter(([, value]) => value !== undefined && value !== null && value !== "");
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}${GAP}${value}\n`).join("");
}
