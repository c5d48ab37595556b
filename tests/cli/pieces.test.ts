// SPDX-License-Identifier: Apache-2.0
// The pure pieces of the command line: sizes, durations, tables, distances in time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, commandLine, fields, table, visible } from "../../src/cli/table.ts";
import { parseDuration, parsePair, parseSize, parseTime, parseWhole } from "../../src/cli/units.ts";

const refused = { code: "commander.invalidArgument" };

test("sizes are read with binary and decimal units, and without one as bytes", () => {
  const sizes: readonly (readonly [string, number])[] = [
    ["8GiB", 8 * 2 ** 30],
    ["8G", 8 * 2 ** 30],
    ["8gib", 8 * 2 ** 30],
    ["1.5GiB", 1.5 * 2 ** 30],
    ["500MB", 500e6],
    ["3 TiB", 3 * 2 ** 40],
    ["1024", 1024],
  ];
  for (const [text, bytes] of sizes) assert.equal(parseSize(text), bytes, text);
  for (const text of ["", "x", "-1", "8 gigs", "1e9", "GiB", "0x10", "99999999TiB"])
    assert.throws(() => parseSize(text), refused, text);
});

test("durations need a unit, and nothing is not a duration", () => {
  assert.deepEqual(
    ["500ms", "90s", "10m", "2h", "1d", "1.5s"].map(parseDuration),
    [500, 90e3, 600e3, 7200e3, 86400e3, 1500],
  );
  for (const text of ["", "10", "0s", "-1s", "10 minutes", "1w"])
    assert.throws(() => parseDuration(text), refused, text);
});

test("whole numbers are refused outside their range, as fractions and as words", () => {
  const parse = parseWhole(-100, 100);
  assert.deepEqual(["-100", "0", "100"].map(parse), [-100, 0, 100]);
  for (const text of ["101", "-101", "1.5", "", " ", "x", "1e1", "0x1"])
    assert.throws(() => parse(text), refused, text);
});

test("pairs collect, a value may hold an equals sign or be empty, a name may not", () => {
  assert.deepEqual(parsePair("B=x=y", parsePair("A=")), { A: "", B: "x=y" });
  for (const text of ["A", "=x", ""]) assert.throws(() => parsePair(text), refused, text);
});

test("a time is passed on in UTC", () => {
  assert.equal(parseTime("2026-12-24T20:00:00+02:00"), "2026-12-24T18:00:00.000Z");
  assert.equal(parseTime("2026-12-24"), "2026-12-24T00:00:00.000Z");
  for (const text of ["", "soon", "2026-13-01", "foo 5", "tuesday 9", "1", "2026-02-31T00:00:00Z", "2026-12-24T20:00"])
    assert.throws(() => parseTime(text), refused, text);
});

test("distances in time read as people say them", () => {
  const now = Date.parse("2026-12-01T12:00:00Z");
  const before = (seconds: number): string => ago(new Date(now - seconds * 1000).toISOString(), now);
  assert.deepEqual([0, 5, 180, 7200, 86400 * 3, -60].map(before), [
    "now",
    "5 s ago",
    "3 min ago",
    "2 h ago",
    "3 days ago",
    "in 60 s",
  ]);
  assert.equal(ago(null, now), "never");
});

test("columns line up whether or not cells are coloured, and no line ends in blanks", () => {
  const text = table(
    ["A", "B", "C"],
    [
      ["\u001B[31mlong\u001B[39m", "1", ""],
      ["x", "22", "end"],
    ],
  );
  const plain = text.replaceAll("\u001B[31m", "").replaceAll("\u001B[39m", "");
  assert.equal(plain, "A     B   C\nlong  1\nx     22  end\n");
});

test("fields leave out what is not known and align the rest", () => {
  assert.equal(
    fields([
      ["a", "1"],
      ["longer", "2"],
      ["none", null],
      ["empty", ""],
    ]),
    "a       1\nlonger  2\n",
  );
});

test("a command on one line is quoted as a shell needs it and shortened with a mark", () => {
  assert.equal(commandLine(["sh", "-c", "it's \n"]), String.raw`sh -c 'it'\''s ⏎'`);
  assert.equal(commandLine(["x".repeat(100)], 10), `${"x".repeat(9)}…`);
});

test("control characters of others are shown, not obeyed", () => {
  assert.equal(visible("\u001B]0;x\u0007\r\u009B2J\u202Ea\nb 😀 é"), "␛]0;x␇␍\\u009b2J\\u202ea⏎b 😀 é");
  assert.equal(commandLine(["echo", "\u001B[31m"]), "echo '␛[31m'");
});
