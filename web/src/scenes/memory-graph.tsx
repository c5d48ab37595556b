// SPDX-License-Identifier: Apache-2.0
// Available memory against the floor of the node, as its reports told it while this page was open: a graph, and the same in
// one sentence.

import { useMemo, useState } from "react";
import type uPlot from "uplot";
import { sizeText } from "../../../src/std/units.ts";
import { Section } from "../parts/page.tsx";
import { axisOf, type Colour, Plot, type PlotOptions } from "../parts/plot.tsx";
import { type MemoryPoint, withPoint } from "./memory-history.ts";
import type { ReportingNode } from "./scene-dialogs.tsx";

/** A page that was opened just now has little to show. */
const SHOWN_MIN_S = 120;
const HEADROOM = 1.1;

function dataOf(points: readonly MemoryPoint[]): uPlot.AlignedData {
  return [
    points.map(({ at }) => at / 1000),
    points.map(({ availableBytes }) => availableBytes),
    points.map(({ floorBytes }) => floorBytes),
  ];
}

function optionsOf(colour: Colour): PlotOptions {
  const axis = axisOf(colour);
  const series = { points: { show: false }, value: (_plot: uPlot, bytes: number | null) => textOf(bytes, "–") };
  return {
    cursor: { y: false, drag: { x: false, y: false } },
    legend: { live: true },
    scales: {
      x: { range: (_plot, low, high) => [Math.min(low, high - SHOWN_MIN_S), high] },
      y: { range: (_plot, _low, high) => [0, high * HEADROOM] },
    },
    axes: [
      { ...axis, size: 28, values: "{HH}:{mm}", incrs: [60, 120] },
      {
        ...axis,
        size: 68,
        incrs: Array.from({ length: 24 }, (_, step) => 2 ** (24 + step)),
        values: (_plot, splits) => splits.map((bytes) => sizeText(bytes)),
      },
    ],
    series: [
      { label: "Time", value: "{HH}:{mm}:{ss}" },
      { ...series, label: "Available", stroke: colour("--busy"), width: 2 },
      { ...series, label: "Floor", stroke: colour("--bad"), width: 1.5, dash: [6, 4] },
    ],
  };
}

function textOf(bytes: number | null | undefined, otherwise: string): string {
  return bytes === null || bytes === undefined ? otherwise : sizeText(bytes);
}

export function MemorySection({ node }: { readonly node: ReportingNode }) {
  const points = useMemoryHistory(node);
  const data = useMemo(() => dataOf(points), [points]);
  return (
    <Section title="Memory against the floor">
      <Plot data={data} optionsOf={optionsOf} />
      <p className="quiet steady">{summary(points)}</p>
    </Section>
  );
}

function useMemoryHistory({ scenes, lastHeartbeatAt }: ReportingNode): readonly MemoryPoint[] {
  const [points, setPoints] = useState<readonly MemoryPoint[]>([]);
  const { availableBytes, floorBytes } = scenes;
  const next =
    lastHeartbeatAt === null
      ? points
      : withPoint(points, { at: Date.parse(lastHeartbeatAt), availableBytes, floorBytes });
  if (next !== points) setPoints(next);
  return next;
}

function summary(points: readonly MemoryPoint[]): string {
  const { availableBytes = null, floorBytes = null } = points.at(-1) ?? {};
  if (availableBytes === null) return "How much memory is available is unknown.";
  const least = Math.min(...points.map((point) => point.availableBytes ?? Number.POSITIVE_INFINITY));
  const since = `Least since this page was opened, at most 10 minutes: ${sizeText(least)}.`;
  const available = `${sizeText(availableBytes)} available`;
  if (floorBytes === null) return `${available}; no floor is set. ${since}`;
  const distance = sizeText(Math.abs(availableBytes - floorBytes));
  const where = availableBytes >= floorBytes ? "above" : "under";
  return `${available}, ${distance} ${where} the floor of ${sizeText(floorBytes)}. ${since}`;
}
