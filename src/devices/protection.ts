// SPDX-License-Identifier: Apache-2.0
// The protection of this machine's devices: their nodes belong to one group alone, in which are exactly the declared accounts.
// What was declared and what was there before is kept in a file of root's, written before anything is changed, so that a
// protection that was cut off can be completed or undone.

import { messageOf } from "../std/errors.ts";

export const STATE_FILE = "/etc/holdfast/devices.json";
export const HOOK_FILE = "/usr/local/lib/holdfast/device-nodes";
export const RULES_FILE = "/etc/udev/rules.d/72-holdfast-devices.rules";
export const MODPROBE_FILE = "/etc/modprobe.d/holdfast-devices.conf";
export const UNIT_DIRECTORY = "/etc/systemd/system";
/** What the hook changed since boot, a line each: time, why, node, what it was. */
export const CHANGES_FILE = "/run/holdfast-devices/changes";
export const NODE_MODE = 0o660;

/** By this line a file of ours is known; a file without it is somebody else's and never touched. */
export const MARK = "Written by: holdfast devices protect";

/** A GPU as the protection needs it. */
export type Guarded = {
  readonly address: string;
  readonly vendor: "nvidia" | "amd" | "intel";
  /** Below /dev. */
  readonly nodes: readonly string[];
  /** One of NVIDIA's chips whose own rules give its nodes to video already. */
  readonly isJetson: boolean;
};

export type NodeRights = { readonly mode: number; readonly uid: number; readonly gid: number };

export type Protection = {
  readonly version: 1;
  /** All of it was done. */
  readonly isComplete: boolean;
  readonly group: string;
  readonly hasMadeGroup: boolean;
  /** Declared; the first is the agent's. */
  readonly accounts: readonly string[];
  /** Those of them that it put into the group. */
  readonly added: readonly string[];
  readonly devices: readonly Guarded[];
  /** Services that get no devices at all. */
  readonly deniedUnits: readonly string[];
  readonly isModprobeLocked: boolean;
  /** People at this machine's desktop lose their access as well. */
  readonly isDesktopLocked: boolean;
  /** The rights of each node before, by its path. */
  readonly before: Readonly<Record<string, NodeRights>>;
};

/** Undefined when there is none; a reason when it cannot be understood. */
export function parseProtection(text: string | undefined): Protection | { readonly unreadable: string } | undefined {
  if (text === undefined) return undefined;
  try {
    const value = JSON.parse(text) as Partial<Protection> & { readonly version?: unknown };
    if (value.version !== 1)
      return { unreadable: `it is of version ${String(value.version)}, written by another Holdfast` };
    const lists = [value.accounts, value.added, value.devices, value.deniedUnits];
    if (typeof value.group !== "string" || !lists.every(Array.isArray) || typeof value.before !== "object")
      return { unreadable: "it lacks parts" };
    return value as Protection;
  } catch (error) {
    return { unreadable: messageOf(error) };
  }
}

/** Those whose nodes it sets; on a Jetson NVIDIA's own rules do. */
export const ownDevices = (devices: readonly Guarded[]): readonly Guarded[] =>
  devices.filter(({ isJetson }) => !isJetson);

/**
 * The nodes that somebody may open to all behind our back, below /dev: not those of DRM, which only root changes and whose
 * numbers differ from boot to boot.
 */
export function watchedNodes(devices: readonly Guarded[]): readonly string[] {
  const own = ownDevices(devices);
  const nodes = own.flatMap((device) => device.nodes).filter((node) => !node.startsWith("dri/"));
  const more = own.some(({ vendor }) => vendor === "nvidia") ? ["nvidia-uvm-tools", "nvidia-modeset"] : [];
  return [...new Set([...nodes, ...more])];
}
