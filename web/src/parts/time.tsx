// SPDX-License-Identifier: Apache-2.0
// A moment as its distance from now, with the exact time in its title. All of them tick together.

import { useSyncExternalStore } from "react";
import { ago } from "../../../src/std/text.ts";

const TICK_MS = 1_000;
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  now = Date.now();
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Rerenders only when the text changes. */
export function useAgo(at: string | null): string {
  return useSyncExternalStore(subscribe, () => ago(at, now));
}

/** Whether this was less than so long ago. */
export function useIsRecent(at: string | null, withinMs: number): boolean {
  return useSyncExternalStore(subscribe, () => at !== null && now - Date.parse(at) < withinMs);
}

/** Whole seconds; 0 without a moment to count from. */
export function useSecondsSince(sinceMs: number | undefined): number {
  return useSyncExternalStore(subscribe, () =>
    sinceMs === undefined ? 0 : Math.max(0, Math.floor((now - sinceMs) / 1000)),
  );
}

export function Ago({ at, never = "never" }: { readonly at: string | null; readonly never?: string }) {
  const text = useAgo(at);
  if (at === null) return <span className="quiet">{never}</span>;
  return (
    <time dateTime={at} title={at}>
      {text}
    </time>
  );
}
