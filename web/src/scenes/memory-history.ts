// SPDX-License-Identifier: Apache-2.0
// The memory of a node as its reports told it while the page looked, pure. Rule: where the page did not look there is a gap,
// never a line.

export type MemoryPoint = {
  /** Of the heartbeat, milliseconds. */
  readonly at: number;
  /** Null: not known. */
  readonly availableBytes: number | null;
  readonly floorBytes: number | null;
};

const HISTORY_MS = 10 * 60_000;
const GAP_MS = 60_000;
/** At two reports a second; more are let go from the front. */
const POINTS_MAX = 1_200;

/** A report that is there already changes nothing. */
export function withPoint(points: readonly MemoryPoint[], point: MemoryPoint): readonly MemoryPoint[] {
  const last = points.at(-1);
  if (last !== undefined && point.at <= last.at) return points;
  const gap =
    last !== undefined && point.at - last.at > GAP_MS ? [{ ...point, at: last.at + 1, availableBytes: null }] : [];
  return [...points, ...gap, point].filter(({ at }) => at >= point.at - HISTORY_MS).slice(-POINTS_MAX);
}
