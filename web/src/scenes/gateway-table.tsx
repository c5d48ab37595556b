// SPDX-License-Identifier: Apache-2.0
// The addresses that clients keep while scenes are switched: what each leads to now, and what went through it.

import type { SceneReport } from "../../../src/protocol/scene-schema.ts";
import { sizeText } from "../../../src/std/units.ts";
import { Foreign } from "../parts/foreign.tsx";
import { type Column, Section, Table } from "../parts/page.tsx";
import { State, type Tone } from "../parts/state.tsx";

type Gateway = SceneReport["gateways"][number];
type Traffic = NonNullable<Gateway["traffic"]>;

const tones: Readonly<Record<Gateway["shows"], Tone>> = { serving: "good", holding: "busy", refusing: "warn" };

const traffic = (head: string, textOf: (traffic: Traffic) => string | number): Column<Gateway> => ({
  head,
  isNumber: true,
  cell: (gateway) => (gateway.traffic === null ? <span className="quiet">?</span> : textOf(gateway.traffic)),
});

const columns: readonly Column<Gateway>[] = [
  { head: "Gateway", cell: ({ name }) => <span className="cut">{name}</span> },
  {
    head: "Listens on",
    cell: ({ listen }) => (
      <span className="cut code" title={listen}>
        <Foreign text={listen} />
      </span>
    ),
  },
  {
    head: "Shows",
    isWide: true,
    cell: ({ shows, model, why }) => (
      <>
        <State tone={tones[shows]} text={shows} /> <Foreign text={model ?? why ?? ""} />
      </>
    ),
  },
  traffic("Open", ({ open }) => open),
  traffic("Total", ({ total }) => total),
  traffic("Held", ({ held }) => held),
  traffic("Refused", ({ refused }) => refused),
  traffic("In", ({ bytesIn }) => sizeText(bytesIn)),
  traffic("Out", ({ bytesOut }) => sizeText(bytesOut)),
];

export type GatewayTableProps = { readonly gateways: readonly Gateway[]; readonly hasActive: boolean };

/** A node tells of its gateways only while a scene is active. */
export function GatewayTable({ gateways, hasActive }: GatewayTableProps) {
  return (
    <Section title="Gateways">
      <Table
        label="Gateways"
        columns={columns}
        rows={gateways}
        keyOf={({ name }) => name}
        empty={<p>{hasActive ? "scenes.yaml names no gateway." : "No scene is active: no gateway leads anywhere."}</p>}
      />
    </Section>
  );
}
