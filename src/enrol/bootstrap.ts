// SPDX-License-Identifier: Apache-2.0
// Renders the bootstrap script: its parts in one text, with the version and the hashes of what it fetches. Nothing else differs
// between two controllers of the same installation, and nothing in it is a secret.

import fs from "node:fs";
import { Failure } from "../std/errors.ts";

export type BootstrapParts = {
  readonly version: string;
  /** SHA-256 in hexadecimal; empty where this installation has none for that architecture. */
  readonly agent: { readonly x64: string; readonly arm64: string };
  readonly runtime: { readonly x64: string; readonly arm64: string };
};

/** In this order: main is in the last one, and called in its last line. */
const PARTS = ["machine", "settings", "controller", "phases", "ending"] as const;

/** Of the later parts without the line that names the interpreter, and what is for shellcheck alone. */
function readPart(name: (typeof PARTS)[number]): string {
  const text = fs.readFileSync(new URL(`bootstrap/${name}.sh`, import.meta.url), "utf8");
  const lines = text.replace(/^# shellcheck disable=SC2034,SC2154\n/m, "");
  return name === PARTS[0] ? lines : lines.replace(/^#!.*\n# SPDX.*\n/, "");
}

export function renderBootstrap({ version, agent, runtime }: BootstrapParts): string {
  const values: Readonly<Record<string, string>> = {
    VERSION: version,
    AGENT_X64: agent.x64,
    AGENT_ARM64: agent.arm64,
    RUNTIME_X64: runtime.x64,
    RUNTIME_ARM64: runtime.arm64,
  };
  const template = PARTS.map(readPart).join("\n");
  return template.replace(/'@([A-Z0-9_]+)@'/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined || !/^[0-9A-Za-z.+-]*$/.test(value))
      throw new Failure("internal", `the bootstrap script: ${name} has no value that a script may hold`);
    return `'${value}'`;
  });
}
