// SPDX-License-Identifier: Apache-2.0
// What this machine has: processor, memory, GPUs. GPUs are looked at every 60 s at most, memory at every call.

import fs from "node:fs/promises";
import { codeOf } from "../std/errors.ts";
import type { Clock } from "../std/clock.ts";
import type { Device, Present } from "./device.ts";
import { readKernelGpus } from "./kernel-gpus.ts";
import { cpuDevice, type Machine, readMachine, readMemory } from "./machine.ts";
import { joinNvidia, NVIDIA_QUERY } from "./nvidia.ts";
import { runTool } from "./tool.ts";

export type { Device } from "./device.ts";

export const GPU_SCAN_PERIOD_MS = 60_000;
const DEVICES_MAX = 64;

export type MachineFacts = Machine & {
  readonly memoryTotalBytes: number;
  readonly memoryAvailableBytes: number;
  readonly devices: Device[];
};

export type DeviceScanner = { readonly read: () => Promise<MachineFacts> };

/** The first read waits for a scan; later ones take the newest finished one, so that a hung tool delays nothing. */
export function deviceScanner(clock: Clock): DeviceScanner {
  let scannedAt = Number.NEGATIVE_INFINITY;
  let scan: Promise<void> | undefined;
  let gpus: readonly Device[] | undefined;
  return {
    read: async () => {
      if (clock.monotonicMs() - scannedAt >= GPU_SCAN_PERIOD_MS) {
        scannedAt = clock.monotonicMs();
        scan = scanGpus().then((found) => {
          gpus = found;
        });
      }
      if (gpus === undefined) await scan;
      const machine = readMachine();
      const memory = readMemory();
      const devices = [cpuDevice(machine, memory), ...(gpus ?? [])].slice(0, DEVICES_MAX);
      return { ...machine, memoryTotalBytes: memory.totalBytes, memoryAvailableBytes: memory.availableBytes, devices };
    },
  };
}

/** Asks every source there is; each of them may be missing. */
export async function scanGpus(): Promise<readonly Device[]> {
  const present = readKernelGpus();
  const run = await runTool("nvidia-smi", NVIDIA_QUERY);
  const others = await Promise.all(present.filter((card) => card.vendor !== "nvidia").map(otherDevice));
  return [
    ...joinNvidia(
      present.filter((card) => card.vendor === "nvidia"),
      run,
    ),
    ...others,
  ];
}

async function otherDevice(card: Present): Promise<Device> {
  const blocked = card.vendor === "amd" && card.driver === "amdgpu" ? await whyClosed("/dev/kfd") : undefined;
  return joinOther(card, blocked);
}

/** AMD and Intel: what the kernel tells. blocked: why the device node cannot be opened. */
export function joinOther(card: Present, blocked: string | undefined): Device {
  const vendorName = card.vendor === "amd" ? "AMD" : "Intel";
  const name =
    card.model ?? `${vendorName} GPU ${card.deviceId === "" ? card.address : `[${card.deviceId}] at ${card.address}`}`;
  const base = {
    kind: "gpu",
    vendor: card.vendor,
    name: name.slice(0, 256),
    address: card.address,
    memoryBytes: card.memoryBytes,
    memoryAvailableBytes: null,
    memoryCapBytes: null,
    unified: null,
    driver: card.driver,
  } as const;
  if (blocked !== undefined) return { ...base, state: "unreadable", reason: blocked };
  if (card.driver === null) return { ...base, state: "unreadable", reason: "no driver is bound to it" };
  if (card.memoryBytes === null)
    return { ...base, state: "memory-unknown", reason: `${card.driver} does not tell its memory` };
  return { ...base, state: "ok", reason: null };
}

/** Really opens the node: mode bits alone do not tell what this account may. */
async function whyClosed(node: string): Promise<string | undefined> {
  try {
    await (await fs.open(node, "r+")).close();
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === "EACCES" || code === "EPERM")
      return `this account may not open ${node}: add it to the group that owns it`;
    return code === "ENOENT"
      ? `${node} does not exist: the compute driver is not loaded`
      : `${node} cannot be opened (${code})`;
  }
}
