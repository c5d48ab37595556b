// SPDX-License-Identifier: Apache-2.0
// Which GPUs the kernel shows: /sys/bus/pci, /sys/class/drm and /proc/driver/nvidia. Reading these never hangs on a driver.
// Rule: display adapters of virtual machines and of management controllers are not GPUs; everything of the three vendors is.

import fs from "node:fs";
import path from "node:path";
import type { Present } from "./device.ts";
import { jetsonGpu } from "./jetson.ts";
import { linkName, listNames, readBytes, readText, type Roots } from "./kernel-files.ts";

const VENDORS: { readonly [id: string]: Present["vendor"] } = {
  "0x10de": "nvidia",
  "0x1002": "amd",
  "0x8086": "intel",
};

/**
 * PCI ids of AMD's processors with graphics: Raven to Granite Ridge, Strix Point and Halo, Krackan, MI300A.
 * Source: pci.ids, amdgpu_drv.c.
 */
const INTEGRATED_AMD =
  /^(15d8|15dd|1636|1638|164c|164d|1681|163f|1506|164e|13c0|15bf|15c8|1900|1901|150e|1586|1114|74a0)$/;
/** Where Intel's processors have their graphics; a card of its own is on another bus. */
const INTEGRATED_INTEL_ADDRESS = "0000:00:02.0";

export function readKernelGpus(roots: Roots): readonly Present[] {
  const found = new Map<string, Present>();
  const add = (device: Present | undefined): void => {
    if (device !== undefined && !found.has(device.address)) found.set(device.address, device);
  };
  const pci = path.join(roots.sys, "bus/pci/devices");
  for (const address of listNames(pci)) {
    if (readText(pci, address, "class")?.startsWith("0x03") === true)
      add(deviceIn(path.join(pci, address), address, roots));
  }
  const drm = path.join(roots.sys, "class/drm");
  for (const card of listNames(drm).filter((name) => /^card\d+$/.test(name))) {
    const directory = path.join(drm, card, "device");
    add(deviceIn(directory, linkName(directory) ?? card, roots));
  }
  for (const name of listNames(roots.proc, "driver/nvidia/gpus")) {
    const address = name.toLowerCase();
    const known = found.get(address) ?? { ...unknownDevice(address, "nvidia"), ...nvidiaFacts(address, roots) };
    // The driver says so itself.
    found.set(address, { ...known, driver: "nvidia" });
  }
  if (![...found.values()].some((device) => device.vendor === "nvidia")) add(jetsonGpu(roots));
  return [...found.values()];
}

function unknownDevice(address: string, vendor: Present["vendor"]): Present {
  return {
    address,
    vendor,
    deviceId: "",
    model: null,
    driver: null,
    nodes: [],
    isIntegrated: false,
    memoryBytes: null,
    memoryUsedBytes: null,
    sharedBytes: null,
    hasSlices: false,
  };
}

function deviceIn(directory: string, name: string, roots: Roots): Present | undefined {
  const vendor = VENDORS[readText(directory, "vendor") ?? ""];
  if (vendor === undefined) return undefined;
  const address = name.toLowerCase();
  const deviceId = (readText(directory, "device") ?? "").replace(/^0x/, "");
  const base = { ...unknownDevice(address, vendor), deviceId, driver: linkName(directory, "driver") ?? null };
  if (vendor === "nvidia") return { ...base, ...nvidiaFacts(address, roots) };
  const render = listNames(directory, "drm").filter((node) => /^renderD\d+$/.test(node));
  const nodes = render.map((node) => `dri/${node}`);
  if (vendor === "intel")
    return {
      ...base,
      nodes,
      isIntegrated: address === INTEGRATED_INTEL_ADDRESS,
      memoryBytes: intelMemory(directory),
    };
  return {
    ...base,
    model: readText(directory, "product_name") ?? null,
    nodes: [...(base.driver === "amdgpu" ? ["kfd"] : []), ...nodes],
    isIntegrated: INTEGRATED_AMD.test(deviceId),
    memoryBytes: readBytes(directory, "mem_info_vram_total"),
    memoryUsedBytes: readBytes(directory, "mem_info_vram_used"),
    sharedBytes: readBytes(directory, "mem_info_gtt_total"),
  };
}

/** Drivers differ in where they tell it, and most do not. */
function intelMemory(directory: string): number | null {
  for (const card of listNames(directory, "drm").filter((name) => /^card\d+$/.test(name))) {
    const bytes = readBytes(directory, "drm", card, "lmem_total_bytes");
    if (bytes !== null) return bytes;
  }
  return readBytes(directory, "tile0/physical_vram_size_bytes");
}

/** The driver names its nodes by a minor number of its own, which is not the order on the bus. */
function nvidiaFacts(address: string, roots: Roots): Pick<Present, "model" | "nodes" | "hasSlices"> {
  const text = readText(roots.proc, "driver/nvidia/gpus", address, "information") ?? "";
  const minor = /^Device Minor:\s*(\d+)$/m.exec(text)?.[1];
  const slices = minor === undefined ? [] : listNames(roots.proc, `driver/nvidia/capabilities/gpu${minor}/mig`);
  const shared = fs.existsSync(path.join(roots.dev, "dxg")) ? [] : ["nvidiactl", "nvidia-uvm"];
  return {
    model: /^Model:\s*(.+)$/m.exec(text)?.[1]?.trim() ?? null,
    nodes: [...(minor === undefined ? [] : [`nvidia${minor}`]), ...shared],
    hasSlices: slices.some((name) => name.startsWith("gi")),
  };
}
