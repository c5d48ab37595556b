// SPDX-License-Identifier: Apache-2.0
// Which GPUs the kernel shows: /sys/bus/pci, /proc/driver/nvidia and /sys/class/drm. Reading these never hangs on a driver.
// Rule: display adapters of virtual machines and of management controllers are not GPUs; everything of the three vendors is.

import fs from "node:fs";
import path from "node:path";
import type { Present } from "./device.ts";

const VENDORS: { readonly [id: string]: Present["vendor"] } = {
  "0x10de": "nvidia",
  "0x1002": "amd",
  "0x8086": "intel",
};

/** roots only for tests on recorded trees. */
export function readKernelGpus(
  roots: { readonly sys: string; readonly proc: string } = { sys: "/sys", proc: "/proc" },
): readonly Present[] {
  const found = new Map<string, Present>();
  const add = (device: Present | undefined): void => {
    if (device !== undefined && !found.has(device.address)) found.set(device.address, device);
  };
  const pci = path.join(roots.sys, "bus/pci/devices");
  for (const address of list(pci)) {
    if (read(path.join(pci, address, "class"))?.startsWith("0x03") === true)
      add(deviceIn(path.join(pci, address), address, roots.proc));
  }
  const drm = path.join(roots.sys, "class/drm");
  for (const card of list(drm).filter((name) => /^card\d+$/.test(name))) {
    const directory = path.join(drm, card, "device");
    const address = path.basename(real(directory) ?? card);
    add(deviceIn(directory, address, roots.proc));
  }
  for (const address of list(path.join(roots.proc, "driver/nvidia/gpus"))) {
    const model = nvidiaModel(roots.proc, address);
    add({ address: address.toLowerCase(), vendor: "nvidia", deviceId: "", model, driver: "nvidia", memoryBytes: null });
  }
  return [...found.values()];
}

function deviceIn(directory: string, address: string, proc: string): Present | undefined {
  const vendor = VENDORS[read(path.join(directory, "vendor")) ?? ""];
  if (vendor === undefined) return undefined;
  const driver = real(path.join(directory, "driver"));
  const memory = read(path.join(directory, "mem_info_vram_total"));
  return {
    address: address.toLowerCase(),
    vendor,
    deviceId: (read(path.join(directory, "device")) ?? "").replace(/^0x/, ""),
    model: vendor === "nvidia" ? nvidiaModel(proc, address) : (read(path.join(directory, "product_name")) ?? null),
    driver: driver === undefined ? null : path.basename(driver),
    memoryBytes: memory !== undefined && /^[1-9]\d*$/.test(memory) ? Number(memory) : null,
  };
}

function nvidiaModel(proc: string, address: string): string | null {
  const text = read(path.join(proc, "driver/nvidia/gpus", address, "information")) ?? "";
  return /^Model:\s*(.+)$/m.exec(text)?.[1]?.trim() ?? null;
}

/** What is not there or not readable is not known: sysfs differs between kernels and drivers. */
function read(file: string): string | undefined {
  try {
    const text = fs.readFileSync(file, "utf8").trim();
    return text === "" ? undefined : text;
  } catch {
    return undefined;
  }
}

function list(directory: string): readonly string[] {
  try {
    return fs.readdirSync(directory).sort();
  } catch {
    return [];
  }
}

function real(link: string): string | undefined {
  try {
    return fs.realpathSync(link);
  } catch {
    return undefined;
  }
}
