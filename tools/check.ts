// SPDX-License-Identifier: Apache-2.0
// npm run check: every check that needs no running program, side by side, a line each, the output of those that fail.
// Rule: what is not checked here or by a test is not a rule. Usage: node tools/check.ts [--fix]

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { installCommand, missingNeeds, systemNeeds } from "./system-needs.ts";
import { readTree } from "./tidy/tree.ts";

type Check = { readonly name: string; readonly argv: readonly string[] };
type Outcome = { readonly check: Check; readonly isOk: boolean; readonly output: string; readonly seconds: number };

const root = fileURLToPath(new URL("..", import.meta.url));
const installed = (name: string): string => path.join(root, "node_modules", ".bin", name);
const tool = (file: string, ...rest: readonly string[]): readonly string[] => [
  process.execPath,
  path.join("tools", file),
  ...rest,
];
const oxlint = [installed("oxlint"), "--type-aware", "--format=unix", "--deny-warnings"];

/** The slowest first, so that they do not end the run alone. */
function checks(): readonly Check[] {
  const scripts = readTree(root).files.filter((file) => file.path.endsWith(".sh") || file.path.startsWith(".ci/"));
  return [
    { name: "oxlint", argv: oxlint },
    { name: "tsc tsconfig.json", argv: [installed("tsc"), "-p", "tsconfig.json"] },
    { name: "knip", argv: [installed("knip"), "--no-progress", "--no-config-hints"] },
    { name: "tsc tsconfig.pure.json", argv: [installed("tsc"), "-p", "tsconfig.pure.json"] },
    { name: "tsc tsconfig.web.json", argv: [installed("tsc"), "-p", "tsconfig.web.json"] },
    { name: "biome format", argv: [installed("biome"), "format", "--reporter=summary", "."] },
    ...(fs.existsSync(path.join(root, "tools/openapi.ts"))
      ? [{ name: "openapi.json", argv: tool("openapi.ts", "--check") }]
      : []),
    ...(fs.existsSync(path.join(root, "tools/scenes-schema.ts"))
      ? [{ name: "scenes.schema.json", argv: tool("scenes-schema.ts", "--check") }]
      : []),
    { name: "tidy", argv: tool("tidy.ts") },
    ...(scripts.length > 0 ? [{ name: "shellcheck", argv: ["shellcheck", ...scripts.map((file) => file.path)] }] : []),
  ];
}

function runCheck(check: Check): Promise<Outcome> {
  const began = performance.now();
  const [command = "", ...rest] = check.argv;
  return new Promise((resolve) => {
    const chunks: string[] = [];
    const end = (isOk: boolean): void =>
      resolve({ check, isOk, output: chunks.join(""), seconds: (performance.now() - began) / 1000 });
    if (command === "shellcheck") {
      const missing = missingNeeds(
        systemNeeds.filter((need) => need.program === command),
        process.env["PATH"] ?? "",
      );
      if (missing.length > 0) {
        chunks.push(`shellcheck is missing; get it with: ${installCommand(missing)}\n`);
        return end(false);
      }
    }
    const child = spawn(command, rest, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => chunks.push(text));
    child.on("error", (error) => {
      chunks.push(`${error.message}\n`);
      end(false);
    });
    child.on("close", (code) => end(code === 0));
  });
}

function report({ check, isOk, output, seconds }: Outcome): void {
  process.stdout.write(`${isOk ? "ok  " : "FAIL"} ${seconds.toFixed(1).padStart(5)} s  ${check.name}\n`);
  if (!isOk) process.stdout.write(`${output.trimEnd().replaceAll(/^/gm, "       ")}\n`);
}

/** As many at once as there are CPUs; each is reported when it ends. */
async function runAll(all: readonly Check[]): Promise<readonly Outcome[]> {
  const waiting = [...all];
  const outcomes: Outcome[] = [];
  const work = async (): Promise<void> => {
    for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
      const outcome = await runCheck(check);
      report(outcome);
      outcomes.push(outcome);
    }
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, work));
  return outcomes;
}

if (process.argv.includes("--fix")) {
  report(await runCheck({ name: "oxlint --fix", argv: [...oxlint, "--fix"] }));
  report(
    await runCheck({
      name: "biome format --write",
      argv: [installed("biome"), "format", "--write", "--reporter=summary", "."],
    }),
  );
}
const outcomes = await runAll(checks());
const failed = outcomes.filter((outcome) => !outcome.isOk);
process.stdout.write(
  failed.length === 0 ? "All checks pass.\n" : `Failed: ${failed.map(({ check }) => check.name).join(", ")}\n`,
);
process.exitCode = failed.length === 0 ? 0 : 1;
