// SPDX-License-Identifier: Apache-2.0
// The end of what a model printed, for people: bounded, without control characters.

import fs from "node:fs";

const READ_BYTES = 4096;
const LINE_LENGTH = 300;

/** The last line that says something in the first of these files that has one. */
export function readTail(files: readonly string[]): string {
  for (const file of files) {
    const lines = lastBytes(file, READ_BYTES)
      .toString()
      .split("\n")
      .filter((line) => line.trim() !== "");
    const last = lines.at(-1);
    if (last !== undefined) return printable(last).slice(-LINE_LENGTH);
  }
  return "";
}

export function lastBytes(file: string, count: number): Buffer {
  try {
    const fd = fs.openSync(file, "r");
    try {
      const { size } = fs.fstatSync(fd);
      const buffer = Buffer.alloc(Math.min(size, count));
      const read = fs.readSync(fd, buffer, 0, buffer.length, size - buffer.length);
      return buffer.subarray(0, read);
    } finally {
      fs.closeSync(fd);
    }
  } catch {
    return Buffer.alloc(0);
  }
}

function printable(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, " ").trim();
}
