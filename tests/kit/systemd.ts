// SPDX-License-Identifier: Apache-2.0
// A real systemd for one test file, as PID 1 of namespaces (systemd.sh), and commands in it. Only root can. It shares the
// machine's network, so a controller of the test is reached; everything else of it is gone at the end.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { findInPasswd } from "../../src/launcher/account.ts";
import { cleanupOf, type Ending } from "./cleanup.ts";
import { until } from "./until.ts";

const script = fileURLToPath(new URL("systemd.sh", import.meta.url));
const checkout = fileURLToPath(new URL("../..", import.meta.url));
/** A start beside other tests on two processors. */
const SLOW = { withinMs: 60_000 };

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

type RunOptions = { readonly as?: string; readonly input?: string };

export type System = {
  /** Pid of its PID 1, as the machine has it. */
  readonly init: number;
  /** Its file system, as the machine sees it. */
  readonly root: string;
  /** As root in it, or as the account that is named. */
  readonly run: (argv: readonly string[], options?: RunOptions) => Ran;
  /** The same while this process goes on: for what asks a controller in it. */
  readonly runBeside: (argv: readonly string[], options?: RunOptions) => Promise<Ran>;
  /** The same, and it must succeed: what it printed. */
  readonly ok: (...argv: readonly string[]) => string;
  /** One property of a unit. */
  readonly property: (unit: string, name: string) => string;
};

export async function bootSystemd(t: Ending): Promise<System> {
  const stack = cleanupOf(t);
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-systemd-"));
  stack.defer(() => takeDown(directory));
  const child = spawn("sh", [script, directory, checkout], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece: Buffer) => (said += piece.toString()));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  stack.defer(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const init = await until(
    "systemd is PID 1",
    () => {
      if (child.exitCode !== null) assert.fail(`systemd did not start: ${said}`);
      return systemdBelow(child.pid ?? 0);
    },
    SLOW,
  );
  const system = systemOf(init, path.join("/proc", String(init), "root"));
  await until("basic.target is active", () => system.run(["systemctl", "is-active", "basic.target"]).code === 0, SLOW);
  return system;
}

/** The child of the process that unshared, once it is systemd itself. */
function systemdBelow(parent: number): number | undefined {
  const [pid] = read(`/proc/${parent}/task/${parent}/children`).trim().split(" ");
  return pid !== undefined && pid !== "" && read(`/proc/${pid}/comm`).trim() === "systemd" ? Number(pid) : undefined;
}

function read(file: string): string {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function systemOf(init: number, root: string): System {
  const enter = ["-t", String(init), "-m", "-u", "-i", "-p", "-C", "-r", "-w", "env", "-i"];
  const path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  const commandOf = (argv: readonly string[], as: string | undefined): readonly string[] => {
    const gid = as === undefined ? undefined : groupOf(root, as);
    const account = gid === undefined ? [] : ["setpriv", `--reuid=${as}`, `--regid=${gid}`, "--init-groups"];
    return [...enter, path, "HOME=/root", "TERM=dumb", ...account, ...argv];
  };
  const run: System["run"] = (argv, { as, input = "" } = {}) => {
    const options = { encoding: "utf8", input, timeout: SLOW.withinMs } as const;
    const { status, stdout, stderr } = spawnSync("nsenter", commandOf(argv, as), options);
    return { code: status, stdout, stderr };
  };
  const runBeside: System["runBeside"] = async (argv, { as, input = "" } = {}) => {
    const child = spawn("nsenter", commandOf(argv, as));
    const code = new Promise<number | null>((resolve) => child.once("close", resolve));
    child.stdin.on("error", () => {}).end(input);
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { code: await code, stdout, stderr };
  };
  const ok = (...argv: readonly string[]): string => {
    const { code, stdout, stderr } = run(argv);
    assert.equal(code, 0, `${argv.join(" ")}: ${stderr}${stdout}`);
    return stdout;
  };
  const property = (unit: string, name: string): string =>
    ok("systemctl", "show", unit, "--property", name, "--value").trim();
  return { init, root, run, runBeside, ok, property };
}

function groupOf(root: string, account: string): number {
  const found = findInPasswd(read(`${root}/etc/passwd`), account);
  assert.ok(found !== undefined, `there is no account ${account} in it`);
  return found.groupId;
}

async function takeDown(directory: string): Promise<void> {
  const cgroup = path.join(directory, "cgroup");
  const own = path.join(cgroup, path.basename(directory));
  // A killed systemd leaves its groups; they empty in the order in which its processes are reaped.
  if (fs.existsSync(own)) await until("its groups are gone", () => removeGroups(own));
  for (const mounted of [
    cgroup,
    path.join(directory, "root", "opt", "holdfast"),
    path.join(directory, "root"),
    directory,
  ])
    spawnSync("umount", ["-l", mounted]);
  fs.rmSync(directory, { recursive: true, force: true });
}

function removeGroups(directory: string): boolean {
  spawnSync("find", [directory, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"], { stdio: "ignore" });
  return !fs.existsSync(directory);
}
