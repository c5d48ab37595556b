// SPDX-License-Identifier: Apache-2.0
// What a person reads of a test run: each file with its claims as it ends, at the end all failures once more in full, the
// slowest files, and as the last line alone "N passed, N failed". Returns text; prints nothing.

import type { FileResult, Result } from "./tally.ts";

const SLOWEST_SHOWN = 5;
const OUTPUT_LINES_MAX = 60;

export type Paint = {
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly dim: (text: string) => string;
};

export const plain: Paint = { red: (text) => text, green: (text) => text, dim: (text) => text };
export const coloured: Paint = {
  red: (text) => `\u001b[31m${text}\u001b[39m`,
  green: (text) => `\u001b[32m${text}\u001b[39m`,
  dim: (text) => `\u001b[2m${text}\u001b[22m`,
};

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
const indent = (text: string, by: string): string => text.replaceAll(/^(?=.)/gm, by);

export function fileText({ file, results, durationMs }: FileResult, paint: Paint): string {
  const lines = results.map((result) => `  ${resultText(result, paint)}`);
  return [`${file} ${paint.dim(seconds(durationMs))}`, ...lines, ""].join("\n");
}

function resultText({ name, isPassed, durationMs, error }: Result, paint: Paint): string {
  const time = durationMs >= 100 ? paint.dim(` ${seconds(durationMs)}`) : "";
  if (isPassed) return `${paint.green("✔")} ${name}${time}`;
  return `${paint.red(`✖ ${name}`)}${time}: ${(error ?? "").split("\n", 1)[0]}`;
}

export function endText(files: readonly FileResult[], paint: Paint): string {
  const results = files.flatMap((file) => file.results);
  const failed = results.filter((result) => !result.isPassed).length;
  return [
    ...failuresText(files, paint),
    ...slowestText(files),
    `${results.length - failed} passed, ${failed} failed`,
    "",
  ].join("\n");
}

function failuresText(files: readonly FileResult[], paint: Paint): readonly string[] {
  const broken = files.filter((file) => file.results.some((result) => !result.isPassed));
  if (broken.length === 0) return [];
  const texts = broken.flatMap(({ file, results, output }) => {
    const failures = results.filter((result) => !result.isPassed);
    const written = output.trimEnd().split("\n").slice(-OUTPUT_LINES_MAX).join("\n");
    return [
      ...failures.map(({ name, error }) => `${paint.red(`✖ ${file}: ${name}`)}\n${indent(error ?? "", "    ")}\n`),
      ...(written === "" ? [] : [`  What ${file} wrote:\n${indent(written, "    | ")}\n`]),
    ];
  });
  return [paint.red("Failures"), "", ...texts];
}

function slowestText(files: readonly FileResult[]): readonly string[] {
  const slowest = files.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, SLOWEST_SHOWN);
  return [
    "Slowest files",
    ...slowest.map(({ file, durationMs }) => `  ${seconds(durationMs).padStart(8)}  ${file}`),
    "",
  ];
}
