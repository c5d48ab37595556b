// SPDX-License-Identifier: Apache-2.0
// A job's output, live: follows its end until one scrolls up, is searched, and is downloaded as text.

import { useDeferredValue, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { FailureOf } from "../parts/failure.tsx";
import { Section } from "../parts/page.tsx";
import { createLogStore, findLines } from "./log-lines.ts";
import { type Tail, useTail } from "./log-tail.ts";
import { LogTools } from "./log-tools.tsx";
import { LogWindow, type LogWindowHandle } from "./log-window.tsx";

export function JobLog({ jobId }: { readonly jobId: string }) {
  const [store] = useState(createLogStore);
  const tail = useTail(jobId, store);
  const view = useSyncExternalStore(store.subscribe, store.view);
  const [search, setSearch] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  /** Which of the found lines is shown; -1: none yet. */
  const [current, setCurrent] = useState(-1);
  const log = useRef<LogWindowHandle>(null);
  const wanted = useDeferredValue(search);
  const found = useMemo(() => findLines(view.lines, wanted), [view, wanted]);
  const step = (by: number): void => {
    if (found.length === 0) return;
    const next = current < 0 && by < 0 ? found.length - 1 : (current + by + found.length) % found.length;
    setCurrent(next);
    setFollowing(false);
    log.current?.show(found[next] ?? 0);
  };
  const change = (text: string): void => {
    setSearch(text);
    setCurrent(-1);
  };
  return (
    <Section title="Output" actions={<TailState state={tail.state} lines={view.lines.length} />}>
      <LogTools
        jobId={jobId}
        search={search}
        onSearch={change}
        found={{ count: found.length, current }}
        onStep={step}
        isFollowing={isFollowing}
        onFollow={setFollowing}
      />
      <FailureOf error={tail.error} />
      {tail.isCut && <p className="note warn">▲ Output beyond the limit was not kept.</p>}
      {view.dropped > 0 && (
        <p className="note">The first {view.dropped} lines are not shown here: download the log for all.</p>
      )}
      <LogWindow
        ref={log}
        lines={view.lines}
        isComplete={tail.state === "ended"}
        search={wanted}
        currentLine={found[current]}
        isFollowing={isFollowing}
        onFollow={setFollowing}
      />
    </Section>
  );
}

const stateTexts: Readonly<Record<Tail["state"], string>> = {
  connecting: "loading…",
  live: "live",
  lost: "connection lost, trying again",
  ended: "complete",
};

/** The count is not read out with each line. */
function TailState({ state, lines }: { readonly state: Tail["state"]; readonly lines: number }) {
  return (
    <span className="quiet">
      <span role="status">{stateTexts[state]}</span>
      {state !== "connecting" && `, ${lines.toLocaleString("en")} ${lines === 1 ? "line" : "lines"}`}
    </span>
  );
}
