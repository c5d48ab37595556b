// SPDX-License-Identifier: Apache-2.0
// When the operation of a node began, by this browser's clock, pure. A report says how far it was when something happened last,
// and while a model loads nothing may happen for minutes: the page counts on from there.

import type { SceneReport } from "../../../src/protocol/scene-schema.ts";

export type OperationClock = {
  readonly report: SceneReport;
  /** Undefined while nothing goes on. */
  readonly began: Began | undefined;
};

export type Began = {
  readonly atMs: number;
  /** False when the page came in the middle of it: it may have begun earlier. */
  readonly isExact: boolean;
};

/** before: undefined at the page's first look. */
export function clockAt(before: OperationClock | undefined, report: SceneReport, nowMs: number): OperationClock {
  if (report.busy === null) return { report, began: undefined };
  const atMs = nowMs - longest(report);
  const isSame = before?.began !== undefined && longest(report) >= longest(before.report);
  if (!isSame) return { report, began: { atMs, isExact: before !== undefined } };
  return { report, began: { ...before.began, atMs: Math.min(atMs, before.began.atMs) } };
}

function longest({ progress }: SceneReport): number {
  return Math.max(0, ...progress.map(({ ms }) => ms));
}
