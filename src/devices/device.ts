// SPDX-License-Identifier: Apache-2.0
// What a device is. Rule: a failure to read one is a state with a reason, never absence; unknown is null, never zero.

export type DeviceState = "ok" | "unreadable" | "tool-missing" | "tool-hung" | "memory-unknown";

export type Device = {
  readonly kind: "cpu" | "gpu";
  readonly vendor: string;
  readonly name: string;
  readonly memoryBytes: number | null;
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
