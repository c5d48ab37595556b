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
  /** It answered before and is gone from the bus. */
  | "lost"
  | "memory-unknown";

export type Device = {
  readonly kind: "cpu" | "gpu";
  readonly vendor: string;
  readonly name: string;
  /** Where it is on the bus, such as "0000:01:00.0"; a MIG slice has its own; null for the processor. */
  readonly address: string | null;
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
  /** Memory that the kernel itself tells (AMD). */
  readonly memoryBytes: number | null;
};
