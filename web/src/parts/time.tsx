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

/** Whole seconds; 0 without a moment to count from. */
export function useSecondsSince(sinceMs: number | undefined): number {
  return useSyncExternalStore(subscribe, () =>
    sinceMs === undefined ? 0 : Math.max(0, Math.floor((now - sinceMs) / 1000)),
  );
}

/** What is left until then as 14:59; 0:00 from then on. Read out by nobody every second. */
export function Countdown({ until }: { readonly until: string }) {
  const text = useSyncExternalStore(subscribe, () => clockText(Date.parse(until) - now));
  return (
    <time dateTime={until} title={until} role="timer" className="countdown">
      {text}
    </time>
  );
}

function clockText(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
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
