// SPDX-License-Identifier: Apache-2.0
// What may not be written, and where: global state, ambient time and chance, printing, default exports, skipped tests, waits.

import { type Ban, folderOf, isTest, type SourceFile } from "./tree.ts";

const SELF = "tools/tidy/bans.ts";

const isProduct = (file: SourceFile): boolean => file.path.startsWith("src/") && !isTest(file);
const isProductOutside =
  (...folders: readonly string[]) =>
  (file: SourceFile): boolean =>
    isProduct(file) && !folders.includes(folderOf(file.path) ?? "");
const isTestOutsideKit = (file: SourceFile): boolean => isTest(file) && !file.path.startsWith("tests/kit/");

export const bans: readonly Ban[] = [
  {
    rule: "global",
    pattern: /\bprocess\s*\.\s*(?:env|argv|exit|exitCode|on|once)\b/g,
    applies: isProductOutside("bin"),
    what: (match) => `${match.replace(/\s+/g, "")} outside src/bin`,
    fix: `take it as an argument and read it in src/bin (${SELF})`,
  },
  {
    rule: "ambient",
    pattern: /\bDate\s*\.\s*now\s*\(|\bMath\s*\.\s*random\s*\(|\bnew\s+Date\s*\(\s*\)/g,
    applies: isProductOutside("std", "bin"),
    what: (match) => `${match.replace(/\s*\(.*/, "()")} reads ambient time or chance`,
    fix: `take a Clock or a Random (src/std) as an argument (${SELF})`,
  },
  {
    rule: "print",
    pattern: /\bconsole\s*\.\s*\w+/g,
    applies: isProductOutside("bin", "cli"),
    what: (match) => `${match} in the product`,
    fix: `write to the Log that was passed in; only bin and cli print (${SELF})`,
  },
  {
    rule: "default-export",
    pattern: /^export\s+default\b/gm,
    applies: (file) => !/\.config\.(?:ts|js|mjs)$/.test(file.path),
    what: () => "default export",
    fix: `export it by name (${SELF})`,
  },
  {
    rule: "skip",
    pattern: /\.\s*(?:skip|todo|only)\s*\(|\b(?:skip|todo|only)\s*:/g,
    applies: (file) => /\.test\.tsx?$/.test(file.path),
    what: (match) => `"${match.trim()}" leaves a test out`,
    fix: `make it run everywhere (tools/system-needs.ts gets what it needs) or delete it (${SELF})`,
  },
  {
    rule: "wait",
    pattern: /\b(?:setTimeout|sleep)\s*\(/g,
    applies: isTestOutsideKit,
    what: (match) => `${match.trim()}…) waits for time to pass`,
    fix: `wait for a signal, or for a state with tests/kit/until.ts (${SELF})`,
  },
];
