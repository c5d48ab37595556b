// SPDX-License-Identifier: Apache-2.0
// A switch as it goes on, model by model: its phase, the rung of readiness that it stands on, and how long it took so far. What
// went on last stays.

import { useState } from "react";
import type { SceneReport } from "../../../src/protocol/scene-schema.ts";
import { Foreign } from "../parts/foreign.tsx";
import { type Column, none, Table } from "../parts/page.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { useSecondsSince } from "../parts/time.tsx";
import { type Began, clockAt } from "./operation-clock.ts";

type Progress = SceneReport["progress"][number];
type Row = Progress & { readonly began: Began | undefined };

const tones: Readonly<Record<Progress["phase"], Tone>> = {
  waiting: "wait",
  starting: "busy",
  loading: "busy",
  healthy: "good",
  stopping: "busy",
  stopped: "gone",
  failed: "bad",
  kept: "good",
};
const ended: ReadonlySet<Progress["phase"]> = new Set(["healthy", "stopped", "failed", "kept"]);

const columns: readonly Column<Row>[] = [
  { head: "Model", cell: ({ model }) => <span className="cut">{model}</span> },
  { head: "Phase", cell: ({ phase }) => <State tone={tones[phase]} text={phase} /> },
  { head: "Stands on", isWide: true, cell: ({ text }) => (text === "" ? none : <Foreign text={text} />) },
  { head: "Since the start", isNumber: true, cell: (row) => <Seconds row={row} /> },
];

export type SwitchProgressProps = {
  readonly report: SceneReport;
  /** When this report came, by this browser's clock. */
  readonly seenAtMs: number;
};

export function SwitchProgress({ report, seenAtMs }: SwitchProgressProps) {
  const began = useOperationBegan(report, seenAtMs);
  const { busy, progress } = report;
  if (progress.length === 0) return null;
  const title = busy === null ? "The last switch" : `Under way: ${busy}`;
  return (
    <div className="progress">
      <h3>{title}</h3>
      <Table
        label={title}
        columns={columns}
        rows={progress.map((row) => ({ ...row, began: ended.has(row.phase) ? undefined : began }))}
        keyOf={({ model }) => model}
        empty={null}
      />
    </div>
  );
}

function useOperationBegan(report: SceneReport, seenAtMs: number): Began | undefined {
  const [clock, setClock] = useState(() => clockAt(undefined, report, seenAtMs));
  const next = clock.report === report ? clock : clockAt(clock, report, seenAtMs);
  if (next !== clock) setClock(next);
  return next.began;
}

function Seconds({ row: { phase, ms, began } }: { readonly row: Row }) {
  const seconds = useSecondsSince(began?.atMs);
  if (phase === "kept") return none;
  if (began === undefined) return `${(ms / 1000).toFixed(1)} s`;
  return `${began.isExact ? "" : "≥ "}${seconds} s`;
}
