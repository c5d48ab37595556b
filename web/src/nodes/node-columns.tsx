// SPDX-License-Identifier: Apache-2.0
// The columns of tables of nodes.

import { Link } from "@tanstack/react-router";
import type { Device, Node } from "../../../src/protocol/node-schema.ts";
import { gibibytes } from "../../../src/protocol/placement.ts";
import type { Column } from "../parts/page.tsx";
import { NodeState } from "../parts/state.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { SceneInShort } from "../scenes/scenes-part.tsx";
import { Ago } from "../parts/time.tsx";

export const nodeColumns: readonly Column<Node>[] = [
  {
    head: "Node",
    cell: (node) => (
      <Link to="/nodes/$nodeId" params={{ nodeId: node.id }} className="cut">
        <Foreign text={node.name} />
      </Link>
    ),
  },
  { head: "State", cell: (node) => <NodeState node={node} /> },
  {
    head: "Jobs",
    isNumber: true,
    cell: (node) => (node.facts === null ? node.running : `${node.running} of ${node.facts.slots}`),
  },
  { head: "CPUs", isNumber: true, cell: (node) => node.facts?.cpuCount ?? "?" },
  {
    head: "Memory",
    isNumber: true,
    cell: (node) => (node.facts === null ? "?" : gibibytes(node.facts.memoryTotalBytes)),
  },
  { head: "GPU", isWide: true, cell: (node) => <span className="cut">{gpuText(node.facts?.devices)}</span> },
  { head: "Scene", cell: ({ scenes }) => <SceneInShort scenes={scenes} /> },
  { head: "Heartbeat", cell: (node) => <Ago at={node.lastHeartbeatAt} /> },
];

function gpuText(devices: readonly Device[] | undefined) {
  if (devices === undefined) return "?";
  const gpus = devices.filter((device) => device.kind === "gpu");
  if (gpus.length === 0) return <span className="quiet">none</span>;
  return <Foreign text={gpus.map((gpu) => `${gpu.name}${gpu.state === "ok" ? "" : ` (${gpu.state})`}`).join(", ")} />;
}
