// SPDX-License-Identifier: Apache-2.0
// A job's output, live: follows its end until one scrolls up, is searched, and is downloaded as text.

import { useDeferredValue, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { LogPage } from "../../../src/protocol/job-schema.ts";
import { codeOf } from "../../../src/std/errors.ts";
import { api } from "../app/api.ts";
import { keepTrying, whileVisible } from "../app/live.ts";
import { FailureOf } from "../parts/failure.tsx";
import { Section } from "../parts/page.tsx";
import { createLogStore, findLines, type LogStore } from "./log-lines.ts";
import { LogTools } from "./log-tools.tsx";
import { LogWindow, type LogWindowHandle } from "./log-window.tsx";

type Tail = {
  readonly state: "connecting" | "live" | "lost" | "ended";
  readonly isCut: boolean;
  readonly error: Error | null;
};

/** The tail stream of one job goes on behind the last chunk after each interruption. */
function useTail(jobId: string, store: LogStore): Tail {
  const [tail, setTail] = useState<Tail>({ state: "connecting", isCut: false, error: null });
  const cursor = useRef<string>(undefined);
  const isDone = useRef(false);
  useEffect(() => {
    const take = (page: LogPage): void => {
      store.add(page.chunks);
      cursor.current = page.chunks.at(-1)?.cursor ?? cursor.current;
      isDone.current = page.ended;
      setTail(({ isCut }) => ({ state: page.ended ? "ended" : "live", isCut: isCut || page.cut, error: null }));
    };
    const follow = async (signal: AbortSignal, onAlive: () => void): Promise<"done" | "again"> => {
      const query = cursor.current === undefined ? {} : { after: cursor.current };
      try {
        for await (const page of api.stream("jobLogTail", { params: { jobId }, query }, { signal, onAlive }))
          take(page);
      } catch (error) {
        const isFinal = codeOf(error) === "not_found" || codeOf(error) === "forbidden";
        if (error instanceof Error && isFinal) setTail((before) => ({ ...before, error }));
        throw error;
      }
      return isDone.current ? "done" : "again";
    };
    return whileVisible((signal) => {
      if (!isDone.current) void keepTrying(follow, signal, () => setTail((before) => ({ ...before, state: "lost" })));
    });
  }, [jobId, store]);
  return tail;
}

/** A job that writes fast changes the store more often than a screen shows: once a frame is enough. */
function useVersion(store: LogStore): number {
  return useSyncExternalStore((notify) => {
    let frame: number | undefined;
    const unsubscribe = store.subscribe(() => {
      frame ??= requestAnimationFrame(() => {
        frame = undefined;
        notify();
      });
    });
    return () => {
      unsubscribe();
      if (frame !== undefined) cancelAnimationFrame(frame);
    };
  }, store.version);
}

export function JobLog({ jobId }: { readonly jobId: string; readonly isEnded: boolean }) {
  const [store] = useState(createLogStore);
  const tail = useTail(jobId, store);
  const version = useVersion(store);
  const [search, setSearch] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const [current, setCurrent] = useState(0);
  const view = useRef<LogWindowHandle>(null);
  const wanted = useDeferredValue(search);
  const lines = store.lines();
  // The lines array is changed in place; the version says so.
  const found = useMemo(() => findLines(store.lines(), wanted), [store, wanted, version]);
  const go = (step: number): void => {
    if (found.length === 0) return;
    const next = (current + step + found.length) % found.length;
    setCurrent(next);
    setFollowing(false);
    view.current?.show(found[next] ?? 0);
  };
  const change = (text: string): void => {
    setSearch(text);
    setCurrent(-1);
  };
  return (
    <Section
      title="Output"
      actions={
        <span className="quiet" role="status">
          {stateText(tail.state, lines.length)}
        </span>
      }
    >
      <LogTools
        jobId={jobId}
        search={search}
        onSearch={change}
        found={{ count: found.length, current }}
        onStep={go}
        isFollowing={isFollowing}
        onFollow={setFollowing}
      />
      <FailureOf error={tail.error} />
      {tail.isCut && <p className="note warn">▲ Output beyond the limit was not kept.</p>}
      {store.dropped() > 0 && (
        <p className="note">The first {store.dropped()} lines are not shown here: download the log for all.</p>
      )}
      <LogWindow
        ref={view}
        lines={lines}
        version={version}
        search={wanted}
        currentLine={found[current]}
        isFollowing={isFollowing}
        onFollow={setFollowing}
      />
    </Section>
  );
}

function stateText(state: Tail["state"], lines: number): string {
  const count = `${lines.toLocaleString("en")} ${lines === 1 ? "line" : "lines"}`;
  if (state === "connecting") return "loading…";
  return { live: `live, ${count}`, lost: `connection lost, trying again, ${count}`, ended: `complete, ${count}` }[
    state
  ];
}
