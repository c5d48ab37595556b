// SPDX-License-Identifier: Apache-2.0
// What happens elsewhere, live: one stream of overviews. Each sets the overview's cache and asks the other shown queries
// again, at most once a second. Rule: a hidden tab holds no stream (browsers allow six connections per host).

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Overview } from "../../../src/protocol/access-schema.ts";
import { codeOf } from "../../../src/std/errors.ts";
import { api, WHO_KEY } from "./api.ts";

export const OVERVIEW_KEY = ["overview", {}] as const;
const REFRESH_MS = 1_000;
const BACKOFF_BASE_MS = 500;
const BACKOFF_CAP_MS = 15_000;
/** The controller says something every 10 s. */
const SILENCE_MS = 25_000;

export type Connection = "connecting" | "live" | "lost";

/** Waits, but no longer than until the signal aborts or the machine is online again. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      window.removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    window.addEventListener("online", done);
  });
}

/** Calls work again and again while it fails or ends, with backoff, until the signal aborts or it returns "done". */
export async function keepTrying(
  work: (signal: AbortSignal, onAlive: () => void) => Promise<"done" | "again">,
  signal: AbortSignal,
  onLost: () => void,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const attempt = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onAlive = (): void => {
      failures = 0;
      clearTimeout(timer);
      timer = setTimeout(() => attempt.abort(), SILENCE_MS);
    };
    try {
      timer = setTimeout(() => attempt.abort(), SILENCE_MS);
      if ((await work(AbortSignal.any([signal, attempt.signal]), onAlive)) === "done") return;
    } catch (error) {
      if (codeOf(error) === "unauthenticated" || codeOf(error) === "not_found") return;
      // Any other end is a lost connection, and said so below.
    } finally {
      clearTimeout(timer);
    }
    if (signal.aborted) return;
    failures++;
    onLost();
    // With jitter, so that all open tabs do not come back in step.
    await pause(Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** (failures - 1)) * (1 + Math.random() / 2), signal);
  }
}

/** Runs while the tab is visible; starts anew when it becomes visible again. */
export function whileVisible(start: (signal: AbortSignal) => void): () => void {
  let current: AbortController | undefined;
  const follow = (): void => {
    if (document.visibilityState === "hidden") {
      current?.abort();
      current = undefined;
    } else if (current === undefined) {
      current = new AbortController();
      start(current.signal);
    }
  };
  document.addEventListener("visibilitychange", follow);
  follow();
  return () => {
    document.removeEventListener("visibilitychange", follow);
    current?.abort();
  };
}

/** Asks again what is shown, at most once a second; what changes meanwhile is asked for after that. */
function refresher(cache: QueryClient): () => void {
  let isDirty = false;
  let isRunning = false;
  const run = async (): Promise<void> => {
    isRunning = true;
    while (isDirty) {
      isDirty = false;
      await cache.invalidateQueries({
        predicate: ({ queryKey }) => queryKey[0] !== WHO_KEY[0] && queryKey[0] !== OVERVIEW_KEY[0],
      });
      await pause(REFRESH_MS, new AbortController().signal);
    }
    isRunning = false;
  };
  return () => {
    isDirty = true;
    if (!isRunning) void run();
  };
}

export function useLive(): Connection {
  const cache = useQueryClient();
  const [connection, setConnection] = useState<Connection>("connecting");
  useEffect(() => {
    const refresh = refresher(cache);
    const follow = async (signal: AbortSignal, onAlive: () => void): Promise<"again"> => {
      for await (const overview of api.stream("changes", {}, { signal, onAlive })) {
        setConnection("live");
        cache.setQueryData<Overview>(OVERVIEW_KEY, overview);
        refresh();
      }
      return "again";
    };
    return whileVisible((signal) => {
      void keepTrying(follow, signal, () => setConnection("lost")).then(() => {
        // The stream was refused: whether somebody is still signed in is for whoami to say.
        if (!signal.aborted) void cache.invalidateQueries({ queryKey: WHO_KEY });
      });
    });
  }, [cache]);
  return connection;
}
