// SPDX-License-Identifier: Apache-2.0
// A machine with a GPU that is none: a real systemd with a real udevd, one real PCI device that says NVIDIA's vendor, what
// NVIDIA's driver shows in /proc, its nodes, and a stand-in for its setuid program. The driver is bound to it by the kernel for
// real. Rule: only the entropy device of a virtual machine is ever unbound, never a disk or a network card.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { bootSystemd, type Ran, type System } from "../kit/systemd.ts";

const holdfast = fileURLToPath(new URL("../../src/bin/holdfast.ts", import.meta.url));
const looker = fileURLToPath(new URL("devices-main.ts", import.meta.url));
const standIn = fileURLToPath(new URL("nvidia-modprobe.c", import.meta.url));
const PCI = "/sys/bus/pci/devices";
const ENTROPY = /^0x1af4 0x(1044|1005)$/;

export type GpuMachine = {
  readonly system: System;
  /** Of the PCI device. */
  readonly address: string;
  /** The command, as root or as the account that is named. */
  readonly holdfast: (argv: readonly string[], as?: string) => Ran;
  /** What status or check, with these accounts, finds; without the command, which is slower. */
  readonly look: (verb: "status" | "check", wish?: Readonly<Record<string, readonly string[]>>, as?: string) => unknown;
  /** How that is started there. */
  readonly lookAt: (verb: "status") => readonly string[];
  /** "660 root:video", or "missing". */
  readonly rights: (node: string) => string;
  /** Makes every node anew as NVIDIA's driver leaves it: open to all. */
  readonly resetNodes: () => void;
  /** The kernel binds the driver again, and udev has dealt with it. */
  readonly bind: () => void;
};

export const NODES = ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"] as const;

export async function bootGpuMachine(t: Ending): Promise<GpuMachine> {
  const system = await bootSystemd(t);
  const { address, driver } = entropyDevice() ?? { address: fs.readdirSync(PCI).at(-1) ?? "", driver: undefined };
  const sh = (script: string): string => system.ok("sh", "-euc", script);
  install(t, system);
  const place = `${PCI}/${address}`;
  sh(`mkdir /run/gpu
echo 0x10de >/run/gpu/vendor; mount --bind /run/gpu/vendor ${place}/vendor
echo 0x030000 >/run/gpu/class; mount --bind /run/gpu/class ${place}/class
mount -t tmpfs tmpfs /proc/driver; mkdir -p /proc/driver/nvidia/gpus/${address}
printf 'Model: \\t\\t NVIDIA GeForce RTX 4090\\nDevice Minor: \\t 0\\n' >/proc/driver/nvidia/gpus/${address}/information
for name in service -control.socket -kernel.socket; do rm /run/systemd/system/systemd-udevd$(echo $name | sed s/^service/.service/); done
systemctl daemon-reload; systemctl start systemd-udevd.service
for name in holdfast stranger server; do id -u $name >/dev/null 2>&1 || useradd --system $name; done`);
  const resetNodes = (): void => void sh(`rm -f ${NODES.join(" ")}; nvidia-modprobe -c 0 -c 255 -u`);
  resetNodes();
  // Types are stripped once, not with each of a hundred commands.
  sh("mkdir -m 1777 /run/compile-cache");
  const node = ["env", "NODE_COMPILE_CACHE=/run/compile-cache", process.execPath];
  return {
    system,
    address,
    lookAt: (verb) => [...node, looker, verb],
    look: (verb, wish = {}, as) => {
      const { stdout, stderr } = system.run(
        [...node, looker, verb, JSON.stringify(wish)],
        as === undefined ? {} : { as },
      );
      assert.notEqual(stdout, "", stderr);
      return JSON.parse(stdout) as unknown;
    },
    holdfast: (argv, as) => system.run([...node, holdfast, ...argv], as === undefined ? {} : { as }),
    rights: (node) => system.run(["stat", "-c", "%a %U:%G", node]).stdout.trim() || "missing",
    resetNodes,
    bind: () => {
      if (driver === undefined) system.ok("udevadm", "trigger", "--action=bind", place);
      else
        sh(
          `echo ${address} >/sys/bus/pci/drivers/${driver}/unbind; echo ${address} >/sys/bus/pci/drivers/${driver}/bind`,
        );
      system.ok("udevadm", "settle");
    },
  };
}

/** One that may be without its driver for a moment; undefined on a machine without one, where the event is triggered instead. */
function entropyDevice(): { readonly address: string; readonly driver: string } | undefined {
  for (const address of fs.readdirSync(PCI)) {
    const read = (name: string): string => fs.readFileSync(path.join(PCI, address, name), "utf8").trim();
    const link = path.join(PCI, address, "driver");
    if (ENTROPY.test(`${read("vendor")} ${read("device")}`) && fs.existsSync(link))
      return { address, driver: path.basename(fs.realpathSync(link)) };
  }
  return undefined;
}

/** A device of the kernel that opens and does nothing, and that is none of those that every device filter lets through. */
function harmlessDevice(): readonly string[] {
  const misc = fs.readFileSync("/proc/misc", "utf8");
  for (const name of ["fuse", "tun", "userfaultfd", "vga_arbiter"]) {
    const minor = new RegExp(`^ *(\\d+) ${name}$`, "m").exec(misc)?.[1];
    if (minor !== undefined) return ["-DNODE_MAJOR=10", `-DNODE_MINOR=${minor}`];
  }
  return assert.fail(`no device here that a stand-in could be: ${misc}`);
}

/** Setuid, as the real one is installed. */
function install(t: Ending, system: System): void {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "stand-in-"));
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  const built = path.join(directory, "nvidia-modprobe");
  const { status, stderr } = spawnSync("cc", ["-O1", ...harmlessDevice(), "-o", built, standIn], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  fs.copyFileSync(built, path.join(system.root, "usr/bin/nvidia-modprobe"));
  system.ok("chmod", "4755", "/usr/bin/nvidia-modprobe");
}
