// SPDX-License-Identifier: Apache-2.0
// The devices of a node. Unknown is said, never shown as zero; what is not ok has its reason and what to do.

import { deviceAdvice } from "../../../src/protocol/device-advice.ts";
import type { Device } from "../../../src/protocol/node-schema.ts";
import { gibibytes } from "../../../src/protocol/placement.ts";
import { Foreign } from "../parts/foreign.tsx";
import { type Column, none, Section, Table } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";

const unknown = <span className="quiet">unknown</span>;

const columns: readonly Column<Device>[] = [
  { head: "Device", isWide: true, cell: (device) => <DeviceName {...device} /> },
  { head: "Memory", isNumber: true, cell: (device) => <DeviceMemory {...device} /> },
  { head: "Free", isNumber: true, cell: (device) => <FreeMemory {...device} /> },
  {
    head: "Cap",
    isNumber: true,
    cell: ({ memoryCapBytes }) => (memoryCapBytes === null ? none : gibibytes(memoryCapBytes)),
  },
  { head: "Driver", cell: ({ driver }) => (driver === null ? unknown : <Foreign text={driver} />) },
  { head: "State", isWide: true, cell: (device) => <DeviceCondition {...device} /> },
];

function DeviceName({ kind, name, address }: Device) {
  return (
    <>
      <Foreign text={name} /> <span className="quiet">{kind}</span>
      {address !== null && (
        <>
          {" "}
          <Foreign text={address} isCode />
        </>
      )}
    </>
  );
}

function DeviceMemory({ memoryBytes, unified }: Device) {
  if (memoryBytes === null) return unified === true ? <span title="unified memory">the machine's</span> : unknown;
  return `${gibibytes(memoryBytes)}${unified === true ? ", unified" : ""}`;
}

function FreeMemory({ memoryAvailableBytes }: Device) {
  return (
    <span className="steady free">{memoryAvailableBytes === null ? unknown : gibibytes(memoryAvailableBytes)}</span>
  );
}

function DeviceCondition({ state, reason }: Device) {
  return (
    <>
      <State tone={state === "ok" ? "good" : "warn"} text={state.replaceAll("-", " ")} />
      {reason !== null && (
        <span className="quiet">
          {" "}
          <Foreign text={reason} />
        </span>
      )}
      {state !== "ok" && <div>{deviceAdvice({ state })}</div>}
    </>
  );
}

export function DeviceTable({ devices }: { readonly devices: readonly Device[] }) {
  return (
    <Section title="Devices">
      <Table
        label="Devices"
        columns={columns}
        rows={devices}
        keyOf={(device) => String(devices.indexOf(device))}
        empty={<p>It reports no GPU.</p>}
      />
    </Section>
  );
}
