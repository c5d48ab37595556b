// SPDX-License-Identifier: Apache-2.0
// What a node has: its machine, its memory as a bar, its devices. Unknown is said, never shown as zero.

import type { Device, Node, NodeFacts } from "../../../src/protocol/node-schema.ts";
import { gibibytes } from "../../../src/protocol/placement.ts";
import { type Column, type Fact, fact, Facts, Section, Table } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { Copy } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";

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
    fact("Boundary", node.boundary === null ? null : boundaryText(node.boundary)),
    fact("Paired", <Ago at={node.createdAt} />),
  ];
  return <Facts rows={rows} />;
}

function boundaryText({ state, sequence }: NonNullable<Node["boundary"]>): string {
  return sequence === null ? state : `${state}, ${sequence} stores so far`;
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

const deviceColumns: readonly Column<Device>[] = [
  { head: "Device", cell: ({ kind }) => kind },
  { head: "Name", isWide: true, cell: ({ name }) => <Foreign text={name} /> },
  {
    head: "Memory",
    isNumber: true,
    cell: ({ memoryBytes, unified }) =>
      `${memoryBytes === null ? "unknown" : gibibytes(memoryBytes)}${unified === true ? ", unified" : ""}`,
  },
  {
    head: "Driver",
    cell: ({ driver }) => (driver === null ? <span className="quiet">unknown</span> : <Foreign text={driver} />),
  },
  {
    head: "State",
    isWide: true,
    cell: ({ state, reason }) => (
      <>
        <State tone={state === "ok" ? "good" : "warn"} text={state.replaceAll("-", " ")} />
        {reason !== null && (
          <span className="quiet">
            {" "}
            <Foreign text={reason} />
          </span>
        )}
      </>
    ),
  },
];

export function DeviceTable({ devices }: { readonly devices: readonly Device[] }) {
  return (
    <Section title="Devices">
      <Table
        label="Devices"
        columns={deviceColumns}
        rows={devices}
        keyOf={(device) => String(devices.indexOf(device))}
        empty={<p>It reports no GPU.</p>}
      />
    </Section>
  );
}
