// SPDX-License-Identifier: Apache-2.0
// Bars for each minute, failed on top of succeeded. Colours come from the style sheet, so that both themes are readable.

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import type { Throughput } from "../../../src/protocol/access-schema.ts";

type Minutes = Throughput["minutes"];

const HEIGHT = 150;
const LEAST_TOP = 4;

/** The higher series first: the lower one is drawn over it. */
function dataOf(minutes: Minutes): uPlot.AlignedData {
  return [
    minutes.map(({ at }) => Date.parse(at) / 1000),
    minutes.map(({ succeeded, failed }) => succeeded + failed),
    minutes.map(({ succeeded }) => succeeded),
  ];
}

function optionsOf(element: HTMLElement, counts: () => Minutes): uPlot.Options {
  const colour = (name: string): string => getComputedStyle(element).getPropertyValue(name).trim();
  const bars = uPlot.paths.bars?.({ size: [0.7, 24], align: 1 });
  const axis = {
    stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui",
  };
  const series = (label: string, name: string, count: (at: number) => number | undefined): uPlot.Series => ({
    label,
    fill: colour(name),
    stroke: colour(name),
    width: 0,
    points: { show: false },
    value: (_plot, _value, _series, index) => String((index === null ? undefined : count(index)) ?? "–"),
    ...(bars === undefined ? {} : { paths: bars }),
  });
  return {
    width: element.clientWidth,
    height: HEIGHT,
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
      series("Failed", "--bad", (at) => counts()[at]?.failed),
      series("Succeeded", "--good", (at) => counts()[at]?.succeeded),
    ],
  };
}

export function ThroughputGraph({ minutes }: { readonly minutes: Minutes }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(minutes);
  useEffect(() => {
    latest.current = minutes;
    plot.current?.setData(dataOf(minutes));
  }, [minutes]);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(
        optionsOf(element, () => latest.current),
        dataOf(latest.current),
        element,
      );
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    const isDark = window.matchMedia("(prefers-color-scheme: dark)");
    isDark.addEventListener("change", draw);
    window.addEventListener("holdfast-theme", draw);
    return () => {
      resized.disconnect();
      isDark.removeEventListener("change", draw);
      window.removeEventListener("holdfast-theme", draw);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, []);
  return <div ref={place} className="graph" aria-hidden="true" />;
}
