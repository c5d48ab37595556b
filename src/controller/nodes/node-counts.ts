// SPDX-License-Identifier: Apache-2.0
// Nodes in service and their slots in numbers, pure: for the overview and for metrics alike.

import type { Node } from "../../protocol/node-schema.ts";

export type NodeCounts = {
  readonly nodes: Readonly<Record<"online" | "offline" | "draining", number>>;
  /** Of nodes that are online and active. */
  readonly slots: Readonly<Record<"all" | "busy", number>>;
};

export function countNodes(all: readonly Node[]): NodeCounts {
  const inService = all.filter((node) => node.status !== "retired");
  const working = inService.filter((node) => node.online && node.status === "active");
  return {
    nodes: {
      online: inService.filter((node) => node.online).length,
      offline: inService.filter((node) => !node.online).length,
      draining: inService.filter((node) => node.status === "draining").length,
    },
    slots: {
      all: working.reduce((sum, node) => sum + (node.facts?.slots ?? 0), 0),
      busy: working.reduce((sum, node) => sum + node.running, 0),
    },
  };
}
