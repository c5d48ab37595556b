// SPDX-License-Identifier: Apache-2.0
// Renders bootstrap.sh: the version and the hashes of what it fetches. Nothing else differs between two controllers of the
// same installation, and nothing in it is a secret.

import fs from "node:fs";
import { Failure } from "../std/errors.ts";

export type BootstrapParts = {
  readonly version: string;
  /** SHA-256 in hexadecimal; empty where this installation has none for that architecture. */
  readonly agent: { readonly x64: string; readonly arm64: string };
  readonly runtime: { readonly x64: string; readonly arm64: string };
};

export function renderBootstrap({ version, agent, runtime }: BootstrapParts): string {
  const values: Readonly<Record<string, string>> = {
    VERSION: version,
    AGENT_X64: agent.x64,
    AGENT_ARM64: agent.arm64,
    RUNTIME_X64: runtime.x64,
    RUNTIME_ARM64: runtime.arm64,
  };
  const template = fs.readFileSync(new URL("bootstrap.sh", import.meta.url), "utf8");
  return template.replace(/'@([A-Z0-9_]+)@'/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined || !/^[0-9A-Za-z.+-]*$/.test(value))
      throw new Failure("internal", `bootstrap.sh: ${name} has no value that a script may hold`);
    return `'${value}'`;
  });
}
