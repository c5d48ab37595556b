// SPDX-License-Identifier: Apache-2.0
// The life of a node, pure: active → draining → retired. Online is never stored: it follows from the last heartbeat.

export const nodeStatuses = ["active", "draining", "retired"] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

export const nodeCan = {
  drain: { statuses: ["active"], otherwise: "only an active node can be drained" },
  activate: { statuses: ["draining"], otherwise: "only a draining node can be made active again" },
  retire: { statuses: ["active", "draining"], otherwise: "the node is retired already" },
  rotate: { statuses: ["active", "draining"], otherwise: "a retired node has no credential" },
} as const satisfies Record<string, { readonly statuses: readonly NodeStatus[]; readonly otherwise: string }>;

/** Of its scenes; kept apart from what becomes of the node itself. */
export const sceneCan = {
  activate: { statuses: ["active", "draining"], otherwise: "a retired node switches no scenes" },
} as const satisfies Record<string, { readonly statuses: readonly NodeStatus[]; readonly otherwise: string }>;

/** Of the machine behind it; kept apart from what becomes of the node itself. */
export const machineCan = {
  takeOver: { statuses: ["active", "draining"], otherwise: "a retired node is not taken over: its name is free" },
} as const satisfies Record<string, { readonly statuses: readonly NodeStatus[]; readonly otherwise: string }>;

export type NodeAction = keyof typeof nodeCan;

/** Whether a node knows what it started. All but trusted refuse every job: see boundary_untrusted in errors.ts. */
export const boundaryStates = ["trusted", "untrusted", "future", "unwritable"] as const;

type Mend = { readonly text: string; readonly commands: readonly string[] };

/** What to do where a node is not trusted: in words, and on the node in this order. */
export const boundaryMends: Readonly<Record<Exclude<(typeof boundaryStates)[number], "trusted">, Mend>> = {
  untrusted: {
    text: "Have the disk that is named looked at. Then stop the agent and reset: it forgets what was started there, so a job whose ending was not acknowledged may run once more.",
    commands: ["holdfast boundary show", "holdfast boundary reset --i-know-jobs-may-repeat"],
  },
  future: {
    text: "Its record was written by a newer Holdfast: bring the node to that version. Never reset for that.",
    commands: ["holdfast boundary show"],
  },
  unwritable: {
    text: "Free or mend the disk that is named; the node tries again with each heartbeat and takes jobs again by itself.",
    commands: ["holdfast boundary show"],
  },
};

/** How a device stands; what each means is told in src/devices/device.ts. Only of an "ok" one is the memory certain. */
export const deviceStates = [
  "ok",
  "unreadable",
  "node-missing",
  "driver-missing",
  "driver-mismatch",
  "tool-missing",
  "tool-hung",
  "lost",
  "memory-unknown",
] as const;

/** A node is online while its last heartbeat is at most this many intervals old, on the database's clock. */
export const ONLINE_INTERVALS = 3;

/** Shown as a warning from this offset between a node's clock and the database's. */
export const CLOCK_OFFSET_WARN_MS = 5_000;

/** How long after it was last noticed a second agent with a node's credential is shown as an alarm. */
export const RIVAL_SHOWN_MS = 10 * 60_000;
