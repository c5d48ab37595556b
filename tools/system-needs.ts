// SPDX-License-Identifier: Apache-2.0
// What the tests and the checks need from the system besides npm. Rule: a missing one is installed where this account may,
// and else named in one command to copy; nothing is left out silently. Usage: node tools/system-needs.ts

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

type Need = {
  /** The program that is looked for on PATH. */
  readonly program: string;
  readonly debianPackage: string;
  readonly purpose: "tests" | "checks";
};

export const systemNeeds: readonly Need[] = [
  { program: "ps", debianPackage: "procps", purpose: "tests" },
  { program: "setpriv", debianPackage: "util-linux", purpose: "tests" },
  { program: "unshare", debianPackage: "util-linux", purpose: "tests" },
  { program: "mount", debianPackage: "mount", purpose: "tests" },
  { program: "cc", debianPackage: "build-essential", purpose: "tests" },
  { program: "mkfs.ext4", debianPackage: "e2fsprogs", purpose: "tests" },
  { program: "setfacl", debianPackage: "acl", purpose: "tests" },
  { program: "faketime", debianPackage: "faketime", purpose: "tests" },
  { program: "systemd-analyze", debianPackage: "systemd", purpose: "tests" },
  { program: "curl", debianPackage: "curl", purpose: "tests" },
  { program: "strace", debianPackage: "strace", purpose: "tests" },
  { program: "busybox", debianPackage: "busybox-static", purpose: "tests" },
  { program: "mksh", debianPackage: "mksh", purpose: "tests" },
  { program: "yash", debianPackage: "yash", purpose: "tests" },
  { program: "ksh93", debianPackage: "ksh93u+m", purpose: "tests" },
  { program: "tinyproxy", debianPackage: "tinyproxy-bin", purpose: "tests" },
  { program: "git", debianPackage: "git", purpose: "tests" },
  { program: "ssh-keygen", debianPackage: "openssh-client", purpose: "tests" },
  { program: "sshd", debianPackage: "openssh-server", purpose: "tests" },
  { program: "chromium", debianPackage: "chromium", purpose: "tests" },
  { program: "shellcheck", debianPackage: "shellcheck", purpose: "checks" },
  { program: "gcc", debianPackage: "gcc", purpose: "checks" },
  { program: "aarch64-linux-gnu-gcc", debianPackage: "gcc-aarch64-linux-gnu", purpose: "checks" },
];

/** Administrators' programs are in sbin, which an ordinary user's PATH often lacks. */
const EXTRA_PATH = ["/usr/sbin", "/sbin"];

export function missingNeeds(needs: readonly Need[], searchPath: string): readonly Need[] {
  const directories = [...searchPath.split(":").filter((directory) => directory !== ""), ...EXTRA_PATH];
  return needs.filter(({ program }) => !directories.some((directory) => isExecutable(path.join(directory, program))));
}

function isExecutable(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The one command that gets them, to copy and run. */
export function installCommand(needs: readonly Need[]): string {
  const packages = [...new Set(needs.map((need) => need.debianPackage))].join(" ");
  return `${process.getuid?.() === 0 ? "" : "sudo "}apt-get update && ${process.getuid?.() === 0 ? "" : "sudo "}apt-get install -y ${packages}`;
}

/** Installs what is missing; returns what to say and whether all is there now. */
export function ensureNeeds(needs: readonly Need[]): { readonly isMet: boolean; readonly say: string } {
  const missing = missingNeeds(needs, process.env["PATH"] ?? "");
  if (missing.length === 0) return { isMet: true, say: "" };
  const names = missing.map((need) => need.program).join(", ");
  const isRoot = process.getuid?.() === 0;
  if (isRoot || spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status === 0) {
    install(missing, isRoot ? [] : ["sudo", "-n"]);
    if (missingNeeds(missing, process.env["PATH"] ?? "").length === 0)
      return { isMet: true, say: `installed: ${names}` };
  }
  return { isMet: false, say: `missing: ${names}; get them with: ${installCommand(missing)}` };
}

/** The package lists are fetched only when the install does not work without. */
function install(needs: readonly Need[], prefix: readonly string[]): void {
  const packages = [...new Set(needs.map((need) => need.debianPackage))];
  const attempts = [["install"], ["update"], ["install"]] as const;
  for (const [index, [action]] of attempts.entries()) {
    const argv = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", action];
    if (action === "install") argv.push("-y", "--no-install-recommends", ...packages);
    const [command = "env", ...rest] = argv;
    const { status } = spawnSync(command, rest, { stdio: ["ignore", "ignore", index === 0 ? "ignore" : "inherit"] });
    if (action === "install" && status === 0) return;
  }
}

if (import.meta.main) {
  const { isMet, say } = ensureNeeds(systemNeeds);
  if (say !== "") process.stdout.write(`${say}\n`);
  process.exitCode = isMet ? 0 : 1;
}
