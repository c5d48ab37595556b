// SPDX-License-Identifier: Apache-2.0
// Bars for each minute, failed on top of succeeded.

import { useMemo } from "react";
import uPlot from "uplot";
import type { Throughput } from "../../../src/protocol/access-schema.ts";
import { axisOf, type Colour, Plot, type PlotOptions } from "../parts/plot.tsx";

type Minutes = Throughput["minutes"];

const LEAST_TOP = 4;

/** The higher series first: the lower one is drawn over it. */
function dataOf(minutes: Minutes): uPlot.AlignedData {
  return [
    minutes.map(({ at }) => Date.parse(at) / 1000),
    minutes.map(({ succeeded, failed }) => succeeded + failed),
    minutes.map(({ succeeded }) => succeeded),
  ];
}

function optionsOf(colour: Colour): PlotOptions {
  const bars = uPlot.paths.bars?.({ size: [0.7, 24], align: 1 });
  const axis = axisOf(colour);
  const series = (label: string, name: string, countOf: (all: number, succeeded: number) => number): uPlot.Series => ({
    label,
    fill: colour(name),
    stroke: colour(name),
    width: 0,
    points: { show: false },
    value: ({ data }, _value, _series, index) => {
      const [all, succeeded] = index === null ? [] : [data[1]?.[index], data[2]?.[index]];
      return typeof all === "number" && typeof succeeded === "number" ? String(countOf(all, succeeded)) : "–";
    },
    ...(bars === undefined ? {} : { paths: bars }),
  });
  return {
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    legend: { live: true },
    scales: {
      // Room for the whole bar of the first and of the present minute.
      x: { range: (_plot, low, high) => [low - 60, high + 60] },
      y: { range: (_plot, _low, high) => [0, Math.max(LEAST_TOP, Math.ceil(high))] },
    },
    axes: [
      { ...axis, size: 28, values: "{HH}:{mm}" },
      { ...axis, size: 36, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000, 100_000] },
    ],
    series: [
      { label: "Time", value: "{HH}:{mm}" },
      series("Failed", "--bad", (all, succeeded) => all - succeeded),
      series("Succeeded", "--good", (_all, succeeded) => succeeded),
    ],
  };
}

export function ThroughputGraph({ minutes }: { readonly minutes: Minutes }) {
  const data = useMemo(() => dataOf(minutes), [minutes]);
  return <Plot data={data} optionsOf={optionsOf} />;
}
