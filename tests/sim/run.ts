// SPDX-License-Identifier: Apache-2.0
// What a suite of the simulator is: one seed gives one run, which ends with a violation of a promise or without one. A run may
// be broken on purpose (a variant), or have exactly one mishap at a given step instead of a random mix.

import type { Chance } from "./chance.ts";
import type { Mishap } from "./steps.ts";

/** Programs that break one rule each: every one must be caught, else the checks prove nothing. */
export const VARIANTS = [
  "store-after-gate",
  "ack-after-one-slot",
  "sequence-across-lives",
  "repair-restamps",
  "burned-from-snapshot",
  "pid-without-start",
] as const;
export type Variant = (typeof VARIANTS)[number];

export type RunOptions = {
  readonly seed: number;
  readonly variant?: Variant;
  readonly single?: { readonly at: number; readonly mishap: Mishap };
};

export type RunEnd = {
  /** What was broken, in one line. */
  readonly violation: string | undefined;
  readonly steps: number;
  /** The last steps before the end. */
  readonly trail: readonly string[];
};

export type Suite = (options: RunOptions) => Promise<RunEnd>;

export class Violation extends Error {
  override readonly name = "Violation";
}

export function must(condition: boolean, broken: string): void {
  if (!condition) throw new Violation(broken);
}

/** Per seed some faults are frequent and others absent: a mix of all alike would hide what two of them do together. */
export type Mix = { readonly kill: number; readonly power: number; readonly error: number };

export function mixOf(chance: Chance): Mix {
  const rate = (most: number): number => (chance.happens(0.5) ? 0 : chance.fraction() * most);
  return { kill: rate(0.04), power: rate(0.04), error: rate(0.08) };
}

type Step = {
  readonly number: number;
  /** Whether an error can come back from it; else only a death or a power cut. */
  readonly mayFail: boolean;
  readonly chance: Chance;
  readonly mix: Mix;
};

/** What befalls a step: the one mishap of a run that has a single one, else what chance gives. */
export function mishapOf(single: RunOptions["single"], { number, mayFail, chance, mix }: Step): Mishap | undefined {
  if (single === undefined) return randomMishap(chance, mix, mayFail);
  return number === single.at && (mayFail || single.mishap.kind !== "error") ? single.mishap : undefined;
}

function randomMishap(chance: Chance, mix: Mix, mayFail: boolean): Mishap | undefined {
  const drawn = chance.fraction();
  const isAfter = chance.happens(0.5);
  if (drawn < mix.kill) return { kind: "kill", isAfter };
  if (drawn < mix.kill + mix.power) return { kind: "power", isAfter };
  if (mayFail && drawn < mix.kill + mix.power + mix.error)
    return { kind: "error", code: chance.happens(0.5) ? "EIO" : "ENOSPC", isAfter };
  return undefined;
}

export const SINGLE_MISHAPS: readonly Mishap[] = [
  ...(["kill", "power"] as const).flatMap((kind) => [true, false].map((isAfter) => ({ kind, isAfter }))),
  ...(["EIO", "ENOSPC"] as const).flatMap((code) =>
    [true, false].map((isAfter) => ({ kind: "error" as const, code, isAfter })),
  ),
];
