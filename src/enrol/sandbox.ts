// SPDX-License-Identifier: Apache-2.0
// What an agent's unit asks for, and what the agent found that it got. Rule: got is measured inside, by trying; what a unit says
// proves nothing, because systemd leaves out in silence what it cannot do (systemd#25014, #3944).

import fs from "node:fs";
import path from "node:path";
import { codeOf } from "../std/errors.ts";
import { readOrEmpty } from "../std/files.ts";
import { nodeDirectory } from "./node-key.ts";
import { writePrivateFile } from "./private-file.ts";

export type Sandbox = {
  /** Pid of the agent that looked. */
  readonly pid: number;
  /** Whom jobs run as; null: the agent's own account. */
  readonly jobAccount: string | null;
  readonly noNewPrivileges: boolean;
  readonly systemCallFilter: boolean;
  /** /usr is read-only for the agent whatever its rights are. */
  readonly protectSystem: boolean;
};

export const ASKED = ["NoNewPrivileges", "SystemCallFilter", "ProtectSystem"] as const;
export type Asked = { readonly [name in (typeof ASKED)[number]]?: string };

/** Of this process. `system`: a directory of the system, which is tried. */
export function measureSandbox(jobAccount: string | null, system = "/usr"): Sandbox {
  const status = readOrEmpty("/proc/self/status");
  return {
    pid: process.pid,
    jobAccount,
    noNewPrivileges: /^NoNewPrivs:\t1$/m.test(status),
    systemCallFilter: /^Seccomp:\t2$/m.test(status),
    protectSystem: isReadOnly(system),
  };
}

/** By making a directory: the kernel tells EROFS before it looks at rights. Missing rights alone protect nothing. */
function isReadOnly(directory: string): boolean {
  const probe = path.join(directory, `.holdfast-probe-${process.pid}`);
  try {
    fs.mkdirSync(probe);
    fs.rmdirSync(probe);
    return false;
  } catch (error) {
    return codeOf(error) === "EROFS";
  }
}

function fileOf(root: string): string {
  return path.join(nodeDirectory(root), "sandbox.json");
}

/** For doctor, which looks from outside. */
export function writeSandbox(root: string, jobAccount: string | null): void {
  writePrivateFile(fileOf(root), `${JSON.stringify(measureSandbox(jobAccount))}\n`);
}

/** What the agent of this pid found; undefined when it did not tell. */
export function readSandbox(root: string, pid: number): Sandbox | undefined {
  try {
    const found = JSON.parse(readOrEmpty(fileOf(root))) as Sandbox;
    return found.pid === pid ? found : undefined;
  } catch {
    return undefined;
  }
}

export type SandboxLine = { readonly text: string; readonly isMissing: boolean };

/** asked: the unit's properties as `systemctl show` tells them. */
export function compareSandbox(asked: Asked, got: Sandbox): readonly SandboxLine[] {
  const measured: { readonly [name in (typeof ASKED)[number]]: boolean } = {
    NoNewPrivileges: got.noNewPrivileges,
    SystemCallFilter: got.systemCallFilter,
    ProtectSystem: got.protectSystem,
  };
  return ASKED.map((name) => {
    const wish = asked[name] ?? "";
    const isAsked = !["", "no"].includes(wish);
    const said = name === "SystemCallFilter" && isAsked ? "yes" : wish === "" ? "no" : wish;
    const text = `${name}: asked ${said}, got ${measured[name] ? "it" : "nothing"}`;
    return { text, isMissing: isAsked && !measured[name] };
  });
}
