// SPDX-License-Identifier: Apache-2.0
// What a node is: its machine, its memory as a bar, how far it is trusted. Unknown is said, never shown as zero.

import type { Node, NodeFacts } from "../../../src/protocol/node-schema.ts";
import { gibibytes } from "../../../src/protocol/placement.ts";
import { type Fact, fact, Facts } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { Copy } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";
import { CredentialState } from "./credential-state.tsx";

export function NodeFactList({ node }: { readonly node: Node }) {
  const { facts } = node;
  const rows: readonly Fact[] = [
    fact(
      "Id",
      <>
        <code>{node.id}</code> <Copy text={node.id} what="the node's id" />
      </>,
    ),
    fact("Heartbeat", <Ago at={node.lastHeartbeatAt} />),
    fact("Agent since", node.session === null ? null : <Ago at={node.session.startedAt} never="unknown" />),
    fact("Agent", facts === null ? null : <Foreign text={facts.version} />),
    fact("Slots", facts === null ? null : `${node.running} of ${facts.slots} busy`),
    fact("Memory", facts === null ? null : <MemoryBar facts={facts} />),
    fact(
      "Machine",
      facts === null ? (
        "unknown until its first heartbeat"
      ) : (
        <Foreign text={`${facts.hostname}, ${facts.arch}, Linux ${facts.kernel}`} />
      ),
    ),
    fact("Processor", facts === null ? null : <Foreign text={`${facts.cpuCount} × ${facts.cpuName}`} />),
    fact("Clock", node.clockOffsetMs === null ? null : offsetText(node.clockOffsetMs)),
    fact("Boundary", node.boundary === null ? null : <Boundary boundary={node.boundary} />),
    fact("Credential", node.status === "retired" ? "revoked" : <CredentialState node={node} />),
    fact("Paired", <Ago at={node.createdAt} />),
    fact("Uninstalled", node.leftAt === null ? null : <Ago at={node.leftAt} />),
  ];
  return <Facts rows={rows} />;
}

function Boundary({ boundary: { state, sequence } }: { readonly boundary: NonNullable<Node["boundary"]> }) {
  const text = sequence === null ? state : `${state}, ${sequence} stores so far`;
  return <State tone={state === "trusted" ? "good" : "bad"} text={text} />;
}

function offsetText(offsetMs: number): string {
  if (offsetMs === 0) return "as the database's";
  return `${Math.abs(offsetMs)} ms ${offsetMs > 0 ? "ahead of" : "behind"} the database's`;
}

function MemoryBar({ facts }: { readonly facts: NodeFacts }) {
  const used = facts.memoryTotalBytes - facts.memoryAvailableBytes;
  const text = `${gibibytes(used)} of ${gibibytes(facts.memoryTotalBytes)} used`;
  return (
    <span className="meter">
      <meter min={0} max={facts.memoryTotalBytes} value={used} aria-label={text} />
      <span>{text}</span>
    </span>
  );
}
