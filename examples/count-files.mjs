// SPDX-License-Identifier: Apache-2.0
// The first job that `holdfast up` runs: SHA-256 and word count of every file below a directory, told in a line for each
// file beside it and for each folder in it (the SHA-256 of a folder is that of its files' lines), and a
// result in the file HOLDFAST_RESULT. A plain program: it knows nothing of Holdfast but that variable.
// Usage: node count-files.mjs DIRECTORY

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

const LEAVE_OUT = new Set([".git", "node_modules"]);

function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => !LEAVE_OUT.has(entry.name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) return filesBelow(path);
      return entry.isFile() ? [path] : [];
    });
}

/** Tells a folder when the walk has left it: the walk goes through one after the other. */
let group = { name: "", hash: createHash("sha256"), words: 0, files: 0 };

function add(file, digest, words) {
  const [top, ...below] = file.split("/");
  if (group.name !== top) {
    tell();
    group = { name: top, hash: createHash("sha256"), digest, words: 0, files: 0, isFolder: below.length > 0 };
  }
  group.hash.update(`${digest}  ${file}\n`);
  group.words += words;
  group.files += 1;
}

function tell() {
  if (group.files === 0) return;
  const digest = group.isFolder ? group.hash.digest("hex") : group.digest;
  const name = group.isFolder ? `${group.name}/ (${group.files} files)` : group.name;
  process.stdout.write(`${digest.slice(0, 16)}…  ${String(group.words).padStart(7)} words  ${name}\n`);
}

const root = process.argv[2] ?? ".";
const all = createHash("sha256");
const total = { files: 0, words: 0, bytes: 0 };
for (const path of filesBelow(root)) {
  const content = readFileSync(path);
  const digest = createHash("sha256").update(content).digest("hex");
  const words = content.toString("latin1").split(/\s+/).filter(Boolean).length;
  all.update(`${digest}  ${relative(root, path)}\n`);
  total.files += 1;
  total.words += words;
  total.bytes += content.length;
  add(relative(root, path), digest, words);
}
tell();
const result = { ...total, sha256: all.digest("hex") };
process.stdout.write(`${total.files} files, ${total.words} words, ${total.bytes} bytes\n`);
if (process.env.HOLDFAST_RESULT) writeFileSync(process.env.HOLDFAST_RESULT, JSON.stringify(result));
