// SPDX-License-Identifier: Apache-2.0
// Sizes and durations as people type them. Undefined: it is none.

const SIZES: Readonly<Record<string, number>> = {
  "": 1,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
  TIB: 2 ** 40,
};
const DURATIONS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** 8GiB, 500MB, 1024: bytes. */
export function sizeOf(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([KMGT]?(?:iB|B)?)$/i.exec(text);
  const bytes = Math.round(Number(match?.[1]) * (SIZES[(match?.[2] ?? "").toUpperCase()] ?? Number.NaN));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** 90s, 10m, 2h, 1d, 500ms: milliseconds. */
export function durationMsOf(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/.exec(text);
  const ms = Math.round(Number(match?.[1]) * (DURATIONS[match?.[2] ?? ""] ?? Number.NaN));
  return Number.isSafeInteger(ms) && ms >= 1 ? ms : undefined;
}

/** An absent unit is no error in a size; what is shown again has one: bytes as a person would say them. */
export function sizeText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"] as const;
  let step = 0;
  for (let left = bytes; left >= 1024 && step < units.length - 1; left /= 1024) step++;
  const amount = bytes / 1024 ** step;
  return `${step === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${units[step] ?? ""}`;
}
