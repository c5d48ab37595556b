// SPDX-License-Identifier: Apache-2.0
// Reads the source files of a checkout once, and what a rule says about one. Rule: only source is read, never data or output.

import fs from "node:fs";
import path from "node:path";
import { viewsOf, type Views } from "./lexer.ts";

export type SourceFile = Views & {
  /** From the root, with forward slashes. */
  readonly path: string;
  readonly text: string;
};

export type Tree = {
  readonly root: string;
  readonly files: readonly SourceFile[];
  readonly directories: readonly string[];
};

export type Problem = {
  readonly rule: string;
  readonly path: string;
  readonly line: number;
  readonly what: string;
  readonly fix: string;
};

const SOURCE = /\.(?:ts|tsx|js|mjs|sql|c|h|sh)$/;
const CODE = /\.(?:ts|tsx|js|mjs)$/;
const SKIPPED = new Set(["node_modules", "tmp", "dist", "build", "golden"]);

export const isCode = (file: SourceFile): boolean => CODE.test(file.path);
export const isTest = (file: SourceFile): boolean => file.path.startsWith("tests/") || /\.test\.tsx?$/.test(file.path);

/** The folder below src that a file belongs to ("db"), or undefined for what lies elsewhere. */
export function folderOf(file: string): string | undefined {
  const [top, folder, ...rest] = file.split("/");
  return top === "src" && folder !== undefined && rest.length > 0 ? folder : undefined;
}

export function readTree(root: string): Tree {
  const files: SourceFile[] = [];
  const directories: string[] = [];
  const visit = (directory: string): void => {
    for (const entry of fs.readdirSync(path.join(root, directory), { withFileTypes: true })) {
      const name = path.posix.join(directory, entry.name);
      if (entry.isDirectory()) {
        if (SKIPPED.has(entry.name) || (entry.name.startsWith(".") && entry.name !== ".ci")) continue;
        directories.push(name);
        visit(name);
      } else if (entry.isFile() && (SOURCE.test(name) || directory === ".ci")) {
        files.push(readSource(root, name));
      }
    }
  };
  visit("");
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { root, files, directories };
}

function readSource(root: string, name: string): SourceFile {
  const text = fs.readFileSync(path.join(root, name), "utf8");
  return { path: name, text, ...(CODE.test(name) ? viewsOf(text) : { withoutComments: text, bare: text }) };
}

export function lineOf(text: string, position: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < position; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

/** A pattern that may not occur in the code of some files; the pattern must have the flag g. */
export type Ban = {
  readonly rule: string;
  readonly pattern: RegExp;
  readonly applies: (file: SourceFile) => boolean;
  readonly what: (match: string) => string;
  readonly fix: string;
};

export function findBanned(tree: Tree, bans: readonly Ban[]): readonly Problem[] {
  return tree.files.filter(isCode).flatMap((file) =>
    bans
      .filter((ban) => ban.applies(file))
      .flatMap((ban) =>
        [...file.bare.matchAll(ban.pattern)].map((match) => ({
          rule: ban.rule,
          path: file.path,
          line: lineOf(file.bare, match.index),
          what: ban.what(match[0]),
          fix: ban.fix,
        })),
      ),
  );
}
