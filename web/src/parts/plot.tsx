// SPDX-License-Identifier: Apache-2.0
// A graph that keeps its place: as wide as it may be, drawn anew when the theme changes. Colours come from the style sheet, so
// that both themes are readable. Rule: it is hidden from screen readers; whoever uses it says the same in words.

import { useEffect, useRef } from "react";
import uPlot from "uplot";

export type PlotOptions = Omit<uPlot.Options, "width" | "height">;

/** Gives the value of a property of the style sheet. */
export type Colour = (name: string) => string;

export type PlotProps = {
  readonly data: uPlot.AlignedData;
  /** Always the same function. */
  readonly optionsOf: (colour: Colour) => PlotOptions;
};

const HEIGHT = 150;

export function axisOf(colour: Colour): uPlot.Axis {
  return {
    stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui",
  };
}

export function Plot({ data, optionsOf }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(data);
  useEffect(() => {
    latest.current = data;
    plot.current?.setData(data);
  }, [data]);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const colour: Colour = (name) => getComputedStyle(element).getPropertyValue(name).trim();
    const draw = (): void => {
      plot.current?.destroy();
      const options = { ...optionsOf(colour), width: element.clientWidth, height: HEIGHT };
      plot.current = new uPlot(options, latest.current, element);
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
  }, [optionsOf]);
  return <div ref={place} className="graph" aria-hidden="true" />;
}
