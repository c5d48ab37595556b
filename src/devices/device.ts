// SPDX-License-Identifier: Apache-2.0
// What a device is. Rule: a failure to read one is a state with a reason, never absence; unknown is null, never zero.

export type DeviceState =
  | "ok"
  /** Present, and this account may not open it. */
  | "unreadable"
  /** A device node that it needs is not there. */
  | "node-missing"
  | "driver-missing"
  /** The driver in the kernel and the library are of different versions: reboot, or reload the driver. */
  | "driver-mismatch"
  | "tool-missing"
  | "tool-hung"
  /** It answered before and is gone from the bus, or its driver cannot reach it any more. */
  | "lost"
  | "memory-unknown";

export type Device = {
  readonly kind: "cpu" | "gpu";
  readonly vendor: string;
  readonly name: string;
  /** Where it is on the bus, such as "0000:01:00.0"; a MIG slice has its own; null for the processor. */
  readonly address: string | null;
  /** Its own; null where it has none and shares the machine's, and where it is not known. */
  readonly memoryBytes: number | null;
  /** What nobody uses of it now, processes of others included. */
  readonly memoryAvailableBytes: number | null;
  /** The most of the machine's memory that the driver lets it use, where it shares that; null: no cap is known. */
  readonly memoryCapBytes: number | null;
  /** Whether it shares the machine's memory; null: not known. */
  readonly unified: boolean | null;
  readonly driver: string | null;
  readonly state: DeviceState;
  readonly reason: string | null;
};

/** A GPU that the kernel shows, before any tool was asked. */
export type Present = {
  /** "0000:01:00.0" in lower case, or the name of its card where it is not on PCI. */
  readonly address: string;
  readonly vendor: "nvidia" | "amd" | "intel";
  /** PCI device id, such as "2b85"; "" when unknown. */
  readonly deviceId: string;
  /** The model as the kernel driver names it. */
  readonly model: string | null;
  /** The kernel driver that is bound to it. */
  readonly driver: string | null;
  /** The device nodes that it needs, below /dev: "nvidia0", "dri/renderD128". */
  readonly nodes: readonly string[];
  /** Known to be on one chip with the processor. */
  readonly isIntegrated: boolean;
  /** Memory that the kernel itself tells (AMD, Intel), and what is used of it. */
  readonly memoryBytes: number | null;
  readonly memoryUsedBytes: number | null;
  /** How much of the machine's memory its driver maps for it (AMD's GTT). */
  readonly sharedBytes: number | null;
  /** NVIDIA: it is, or may be, cut into MIG slices. */
  readonly hasSlices: boolean;
};

/** Why this account does not get to a device. */
export type Blocked = { readonly state: "node-missing" | "unreadable"; readonly reason: string };

/** How a vendor's tool ended. */
export type ToolRun =
  /** complaint: its standard error; a lost card among others is told only there. */
  | { readonly kind: "answered"; readonly output: string; readonly complaint: string }
  /** Not installed where this account looks. */
  | { readonly kind: "missing" }
  | { readonly kind: "hung"; readonly afterMs: number }
  /** status: null when it could not be started or was killed. */
  | { readonly kind: "failed"; readonly status: number | null; readonly message: string };

/** Length limits of the protocol. */
const NAME_LENGTH_MAX = 256;
const REASON_LENGTH_MAX = 512;
/** No device has this much; a tool that says more is wrong. */
const MEMORY_BYTES_MAX = 2 ** 50;

/** A GPU with what is known; the rest is unknown. */
export function gpu(known: Pick<Device, "vendor" | "name" | "address" | "state" | "reason"> & Partial<Device>): Device {
  const device: Device = {
    kind: "gpu",
    memoryBytes: null,
    memoryAvailableBytes: null,
    memoryCapBytes: null,
    unified: null,
    driver: null,
    ...known,
  };
  return {
    ...device,
    name: device.name.slice(0, NAME_LENGTH_MAX),
    driver: device.driver?.slice(0, NAME_LENGTH_MAX) ?? null,
    reason: device.reason?.slice(0, REASON_LENGTH_MAX) ?? null,
  };
}

/** A count of bytes as a tool or the kernel tells it; null for what cannot be one. */
export function plausibleBytes(value: number | null | undefined): number | null {
  if (value === null || value === undefined || !Number.isFinite(value)) return null;
  return value > 0 && value <= MEMORY_BYTES_MAX ? Math.round(value) : null;
}

/** What is free of a memory; null unless both numbers make sense together. */
export function freeBytes(total: number | null, used: number | null): number | null {
  return total === null || used === null || used < 0 || used > total ? null : total - used;
}
