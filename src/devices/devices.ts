// SPDX-License-Identifier: Apache-2.0
// What this machine has: processor, memory, GPUs. GPUs are looked at every 60 s at most, memory at every call. A GPU that was
// there and is gone stays, as lost, for the life of the agent.

import type { Clock } from "../std/clock.ts";
import { type Device, gpu } from "./device.ts";
import { cpuDevice, type Machine, readMachine, readMemory } from "./machine.ts";
import { scanGpus, type Surroundings } from "./scan.ts";

export type { Device } from "./device.ts";
export type { Surroundings } from "./scan.ts";

export const GPU_SCAN_PERIOD_MS = 60_000;
const DEVICES_MAX = 64;

export type MachineFacts = Machine & {
  readonly memoryTotalBytes: number;
  readonly memoryAvailableBytes: number;
  readonly devices: Device[];
};

export type DeviceScanner = { readonly read: () => Promise<MachineFacts> };

/** The first read waits for a scan; later ones take the newest finished one, so that a hung tool delays nothing. */
export function deviceScanner(clock: Clock, around: Surroundings): DeviceScanner {
  let scannedAt = Number.NEGATIVE_INFINITY;
  let scan: Promise<void> | undefined;
  let gpus: readonly Device[] | undefined;
  return {
    read: async () => {
      if (clock.monotonicMs() - scannedAt >= GPU_SCAN_PERIOD_MS) {
        scannedAt = clock.monotonicMs();
        scan = scanGpus(around).then((found) => {
          gpus = withLost(gpus ?? [], found);
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

/** What was seen before and is gone. Slices come and go when a card is cut anew: those are not lost. */
export function withLost(before: readonly Device[], now: readonly Device[]): readonly Device[] {
  const cardOf = (address: string): string => address.split("/")[0] ?? address;
  const seen = new Set(now.map((device) => cardOf(device.address ?? "")));
  const gone = before.filter(({ address }) => address !== null && !address.includes("/") && !seen.has(address));
  return [
    ...now,
    ...gone.map((device) =>
      gpu({
        ...device,
        memoryAvailableBytes: null,
        state: "lost",
        reason: `it was at ${device.address} and is gone from the bus: reboot, or look at dmesg`,
      }),
    ),
  ];
}
