// SPDX-License-Identifier: Apache-2.0
// Who imports whom: src/DEPS between folders, nobody imports bin, tests or tools, and no cycles, types and dynamic ones included.

import fs from "node:fs";
import path from "node:path";
import { folderOf, isCode, lineOf, type Problem, type SourceFile, type Tree } from "./tree.ts";

const DEPS = "src/DEPS";
const IMPORT = /\b(?:from|import)\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]*)\1/g;

type Import = { readonly from: string; readonly to: string; readonly line: number };
type Allowed = ReadonlyMap<string, (folder: string) => boolean>;

export function checkImports(tree: Tree): readonly Problem[] {
  const imports = tree.files.filter(isCode).flatMap(importsOf);
  const { allowed, problems } = readDeps(tree);
  return [
    ...problems,
    ...undeclared(tree, allowed),
    ...imports.flatMap((edge) => checkEdge(edge, allowed)),
    ...cycles(imports),
  ];
}

function importsOf(file: SourceFile): readonly Import[] {
  return (
    [...file.withoutComments.matchAll(IMPORT)]
      // What only looks like an import because it stands in a string is blanked in the bare view.
      .filter((match) => file.bare[match.index] === file.withoutComments[match.index])
      .map((match) => ({
        from: file.path,
        to: path.posix.join(path.posix.dirname(file.path), match[2] ?? ""),
        line: lineOf(file.text, match.index),
      }))
  );
}

function readDeps(tree: Tree): { allowed: Allowed; problems: readonly Problem[] } {
  const allowed = new Map<string, (folder: string) => boolean>();
  const problems: Problem[] = [];
  const file = path.join(tree.root, DEPS);
  const lines = fs.existsSync(file) ? fs.readFileSync(file, "utf8").split("\n") : [];
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [, folder, rule] = /^([a-z][a-z0-9-]*): (.+)$/.exec(line) ?? [];
    if (folder === undefined || rule === undefined || allowed.has(folder)) {
      const what = folder === undefined ? "not `folder: folders`" : `${folder} stands here twice`;
      problems.push({ rule: "deps", path: DEPS, line: index + 1, what, fix: `correct the line (${DEPS})` });
      continue;
    }
    const [head, but, ...names] = rule.split(/\s+/);
    if (head === "everything")
      allowed.set(folder, (other) => other !== "bin" && other !== "web" && !(but === "but" && names.includes(other)));
    else allowed.set(folder, (other) => rule.split(/\s+/).includes(other));
  }
  return { allowed, problems };
}

/** A folder of src; or the page, which lies outside of it and has a line of its own. */
function importerOf(file: string): string | undefined {
  return folderOf(file) ?? (file.startsWith("web/src/") ? "web" : undefined);
}

function undeclared(tree: Tree, allowed: Allowed): readonly Problem[] {
  const folders = new Set(tree.files.flatMap((file) => importerOf(file.path) ?? []));
  return [...folders]
    .filter((folder) => !allowed.has(folder))
    .map((folder) => ({
      rule: "deps",
      path: folder === "web" ? folder : `src/${folder}`,
      line: 1,
      what: "has no line in src/DEPS",
      fix: `add one (${DEPS})`,
    }));
}

function checkEdge({ from, to, line }: Import, allowed: Allowed): readonly Problem[] {
  const importer = importerOf(from);
  if (importer === undefined) return [];
  const problem = (what: string, fix: string): readonly Problem[] => [{ rule: "deps", path: from, line, what, fix }];
  const imported = importerOf(to);
  const testMayUseKit = from.endsWith(".test.ts") && to.startsWith("tests/kit/");
  if (imported === undefined) {
    // package.json and the like are data; what is code outside src is bench, tests, tools or web.
    if (testMayUseKit || !/\.(?:ts|tsx|js|mjs)$/.test(to)) return [];
    return problem(
      `${importer === "web" ? "web" : "src"} imports ${to}`,
      `move what is shared into src; nothing imports tests or tools (tools/tidy/imports.ts)`,
    );
  }
  if (imported === importer) return [];
  if (imported === "bin")
    return problem(
      `${importer} imports bin (${to})`,
      "pass it as an argument; nothing imports bin (tools/tidy/imports.ts)",
    );
  if (allowed.get(importer)?.(imported) !== false) return [];
  return problem(
    `${importer} imports ${imported} (${to})`,
    `move the code, pass it as an argument, or change the design (${DEPS})`,
  );
}

/** Each cycle once, as the path that closes it, reported at the import that does. */
function cycles(imports: readonly Import[]): readonly Problem[] {
  const edges = Map.groupBy(imports, (edge) => edge.from);
  const done = new Set<string>();
  const trail: string[] = [];
  const problems: Problem[] = [];
  const visit = (file: string): void => {
    trail.push(file);
    for (const edge of edges.get(file) ?? []) {
      const at = trail.indexOf(edge.to);
      if (at >= 0) {
        const what = `import cycle: ${[...trail.slice(at), edge.to].join(" → ")}`;
        problems.push({
          rule: "cycle",
          path: file,
          line: edge.line,
          what,
          fix: "move what both need into a third file (tools/tidy/imports.ts)",
        });
      } else if (!done.has(edge.to)) visit(edge.to);
    }
    trail.pop();
    done.add(file);
  };
  for (const file of edges.keys()) if (!done.has(file)) visit(file);
  return problems;
}
