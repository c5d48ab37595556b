// SPDX-License-Identifier: Apache-2.0
// Follows the output of one job into a store. Rule: after each interruption it goes on behind the last chunk it has, and a
// hidden tab holds no stream.

import { useEffect, useState } from "react";
import type { LogPage } from "../../../src/protocol/job-schema.ts";
import { codeOf } from "../../../src/std/errors.ts";
import { api } from "../app/api.ts";
import { keepTrying, whileVisible } from "../app/live.ts";
import type { LogStore } from "./log-lines.ts";

export type Tail = {
  readonly state: "connecting" | "live" | "lost" | "ended";
  readonly isCut: boolean;
  readonly error: Error | null;
};

type Change = (change: (before: Tail) => Tail) => void;

/** Returns how to end it. */
function followLog(jobId: string, store: LogStore, change: Change): () => void {
  let cursor: string | undefined;
  let isDone = false;
  const take = (page: LogPage): void => {
    store.add(page.chunks);
    cursor = page.chunks.at(-1)?.cursor ?? cursor;
    isDone = page.ended;
    change(({ isCut }) => ({ state: page.ended ? "ended" : "live", isCut: isCut || page.cut, error: null }));
  };
  const follow = async (signal: AbortSignal, onAlive: () => void): Promise<"done" | "again"> => {
    const query = cursor === undefined ? {} : { after: cursor };
    try {
      for await (const page of api.stream("jobLogTail", { params: { jobId }, query }, { signal, onAlive })) {
        if (signal.aborted) break;
        take(page);
      }
    } catch (error) {
      const isRefused = codeOf(error) === "not_found" || codeOf(error) === "forbidden";
      if (error instanceof Error && isRefused) change((before) => ({ ...before, error }));
      throw error;
    }
    return isDone ? "done" : "again";
  };
  return whileVisible((signal) => {
    if (!isDone) void keepTrying(follow, signal, () => change((before) => ({ ...before, state: "lost" })));
  });
}

export function useTail(jobId: string, store: LogStore): Tail {
  const [tail, setTail] = useState<Tail>({ state: "connecting", isCut: false, error: null });
  useEffect(() => {
    store.clear();
    return followLog(jobId, store, setTail);
  }, [jobId, store]);
  return tail;
}
