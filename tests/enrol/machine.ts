// SPDX-License-Identifier: Apache-2.0
// A machine for one test: this one's root below an overlay, so that what root does in it reaches nothing outside, and what it
// changed is a list. Network, /proc and /dev are this machine's; /run is empty. Only root can.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { asNobody, type Finished, runCommand } from "./home.ts";

export type Machine = {
  /** Its file system as this process sees it. */
  readonly root: string;
  readonly run: (
    line: string,
    options?: { readonly isNobody?: boolean; readonly env?: Readonly<Record<string, string>> },
  ) => Promise<Finished>;
  /** Every path that is other than on the machine below, apart from what each tool that makes an account leaves. */
  readonly changes: () => readonly string[];
  /** owner:group mode of these paths. */
  readonly owners: (...files: readonly string[]) => Readonly<Record<string, string>>;
};

/** Locks, backups and caches of useradd. */
const OF_ACCOUNTS = /^etc\/(\.pwd\.lock|(passwd|group|shadow|gshadow|subuid|subgid)-)$/;

export function createMachine(t: Ending): Machine {
  const at = fs.mkdtempSync(path.join(os.tmpdir(), "machine-"));
  const root = path.join(at, "root");
  const upper = path.join(at, "upper");
  cleanupOf(t).defer(() => {
    spawnSync("umount", ["-R", "-l", root]);
    spawnSync("umount", ["-l", at]);
    fs.rmSync(at, { recursive: true, force: true });
  });
  mount("-t", "tmpfs", "holdfast-machine", at);
  for (const name of ["root", "upper", "work"]) fs.mkdirSync(path.join(at, name));
  mount("-t", "overlay", "overlay", "-o", `lowerdir=/,upperdir=${upper},workdir=${path.join(at, "work")}`, root);
  mount("--bind", "/proc", path.join(root, "proc"));
  mount("--bind", "/dev", path.join(root, "dev"));
  mount("-t", "tmpfs", "tmpfs", path.join(root, "run"), "-o", "mode=755");
  return {
    root,
    run: (line, { isNobody = false, env = {} } = {}) => {
      const account = isNobody ? asNobody : [];
      return runCommand(["chroot", root, ...account, "sh", "-c", line], { HOME: "/root", ...env });
    },
    changes: () => changed(upper, ""),
    owners: (...files) => Object.fromEntries(files.map((file) => [file, ownerOf(root, file)])),
  };
}

function mount(...args: readonly string[]): void {
  const { status, stderr } = spawnSync("mount", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`mount ${args.join(" ")}: ${stderr}`);
}

function changed(upper: string, below: string): readonly string[] {
  return fs.readdirSync(path.join(upper, below), { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(below, entry.name);
    const [here, there] = [path.join(upper, file), path.join("/", file)];
    const isThere = fs.lstatSync(there, { throwIfNoEntry: false }) !== undefined;
    if (entry.isDirectory()) return [...(isThere ? [] : [file]), ...changed(upper, file)];
    if (OF_ACCOUNTS.test(file)) return [];
    const isSame = isThere && entry.isFile() && fs.readFileSync(here).equals(fs.readFileSync(there));
    return isSame ? [] : [file];
  });
}

function ownerOf(root: string, file: string): string {
  const { uid, gid, mode } = fs.statSync(path.join(root, file));
  const name = (list: string, id: number): string =>
    fs
      .readFileSync(path.join(root, "etc", list), "utf8")
      .split("\n")
      .map((line) => line.split(":"))
      .find((fields) => fields[2] === String(id))?.[0] ?? String(id);
  return `${name("passwd", uid)}:${name("group", gid)} ${(mode & 0o7777).toString(8)}`;
}
