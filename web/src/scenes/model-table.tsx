// SPDX-License-Identifier: Apache-2.0
// The model servers of a node, each with the proof of what it is: its marker, told by this very process.

import type { SceneReport } from "../../../src/protocol/scene-schema.ts";
import { sizeText } from "../../../src/std/units.ts";
import { Foreign } from "../parts/foreign.tsx";
import { type Column, none, Section, Table } from "../parts/page.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { isUntold } from "./switch-preview.ts";

type Model = SceneReport["models"][number];

const tones: Readonly<Record<Model["condition"], Tone>> = {
  healthy: "good",
  unhealthy: "bad",
  dead: "bad",
  legacy: "warn",
};

const columns: readonly Column<Model>[] = [
  { head: "Model", cell: ({ name }) => <span className="cut">{name}</span> },
  {
    head: "Condition",
    isWide: true,
    cell: ({ condition, why }) => (
      <>
        <State tone={tones[condition]} text={condition} />
        {why !== "" && (
          <span className="quiet">
            {" "}
            <Foreign text={why} />
          </span>
        )}
      </>
    ),
  },
  {
    head: "Marker",
    cell: ({ marker }) => (
      <span className="cut code" title={marker}>
        <Foreign text={marker} />
      </span>
    ),
  },
  { head: "Process", isNumber: true, cell: ({ pid }) => pid ?? none },
  { head: "Port", isNumber: true, cell: ({ port }) => port ?? none },
  { head: "In RAM", isNumber: true, cell: ({ anonymousBytes }) => bytesText(anonymousBytes) },
  { head: "In swap", isNumber: true, cell: ({ swappedBytes }) => bytesText(swappedBytes) },
];

function bytesText(bytes: number | null) {
  return bytes === null ? none : sizeText(bytes);
}

export function ModelTable({ report }: { readonly report: SceneReport }) {
  return (
    <Section title="Model servers">
      <Table
        label="Model servers"
        columns={columns}
        rows={report.models}
        keyOf={({ name }) => name}
        empty={<p>{isUntold(report) ? "It tells of them with its next heartbeats." : "No model server runs here."}</p>}
      />
    </Section>
  );
}
