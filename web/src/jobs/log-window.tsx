// SPDX-License-Identifier: Apache-2.0
// Shows the lines of a log that are in view and no others, so that 500 000 of them stay usable. Every line has one height;
// a long one scrolls sideways. Follows the end while the reader is at the end.

import { Fragment, type Ref, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";
import { shown } from "../parts/foreign.tsx";
import type { LogLine } from "./log-lines.ts";

/** Must equal --log-line in the style sheet. */
const LINE_PX = 18;
const OVERSCAN = 20;
/** Of one line, in characters; the rest is in the download. */
const SHOWN_MAX = 4_000;
const AT_END_PX = 8;

export type LogWindowHandle = { readonly show: (line: number) => void };

export type LogWindowProps = {
  readonly ref: Ref<LogWindowHandle>;
  readonly lines: readonly LogLine[];
  /** Whether no line will follow. */
  readonly isComplete: boolean;
  readonly search: string;
  readonly currentLine: number | undefined;
  readonly isFollowing: boolean;
  readonly onFollow: (isFollowing: boolean) => void;
};

export function LogWindow({ ref, lines, isComplete, search, currentLine, isFollowing, onFollow }: LogWindowProps) {
  const element = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const lastTop = useRef(0);
  useLayoutEffect(() => {
    const box = element.current;
    // Beyond the end: the browser stops there.
    if (box !== null && isFollowing) box.scrollTop = lines.length * LINE_PX;
  }, [lines.length, isFollowing]);
  useImperativeHandle(ref, () => ({
    show: (line) =>
      element.current?.scrollTo({ top: Math.max(0, line * LINE_PX - (element.current.clientHeight - LINE_PX) / 2) }),
  }));
  const scrolled = (): void => {
    const box = element.current;
    if (box === null) return;
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight <= AT_END_PX;
    // Only a person scrolls up; new lines only move the end down.
    if (isFollowing && !isAtEnd && box.scrollTop < lastTop.current) onFollow(false);
    else if (!isFollowing && isAtEnd && box.scrollTop > lastTop.current) onFollow(true);
    lastTop.current = box.scrollTop;
    setView({ top: box.scrollTop, height: box.clientHeight });
  };
  const first = Math.max(0, Math.floor(view.top / LINE_PX) - OVERSCAN);
  const last = Math.min(lines.length, Math.ceil((view.top + view.height) / LINE_PX) + OVERSCAN);
  return (
    <div
      ref={element}
      className="log"
      onScroll={scrolled}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label="Output of the job"
    >
      {lines.length === 0 && <p className="quiet">{isComplete ? "It wrote nothing." : "No output yet."}</p>}
      <div className="log-space" style={{ height: lines.length * LINE_PX }}>
        <div className="log-lines" style={{ transform: `translateY(${first * LINE_PX}px)` }}>
          {lines.slice(first, last).map((line, index) => (
            <Line
              key={first + index}
              number={first + index + 1}
              line={line}
              isNewEpoch={line.epoch !== (lines[first + index - 1]?.epoch ?? line.epoch)}
              search={search}
              isCurrent={first + index === currentLine}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

type LineProps = {
  readonly number: number;
  readonly line: LogLine;
  readonly isNewEpoch: boolean;
  readonly search: string;
  readonly isCurrent: boolean;
};

function Line({ number, line, isNewEpoch, search, isCurrent }: LineProps) {
  const text = line.text.endsWith("\r") ? line.text.slice(0, -1) : line.text;
  const rest = text.length - SHOWN_MAX;
  const classes = ["log-line", line.stream, isCurrent ? "current" : "", isNewEpoch ? "new-epoch" : ""];
  return (
    <div className={classes.join(" ")} title={`${line.stream}, epoch ${line.epoch}, ${line.at}`}>
      <span className="log-number" aria-hidden="true">
        {number}
      </span>
      <span className="log-stream">{line.stream === "stderr" ? "err" : "out"}</span>
      <bdi dir="ltr">
        <Marked text={text.slice(0, SHOWN_MAX)} search={search} />
      </bdi>
      {rest > 0 && <span className="quiet"> … {rest} more characters in the download</span>}
    </div>
  );
}

function Marked({ text, search }: { readonly text: string; readonly search: string }) {
  if (search === "") return shown(text, "\t");
  const lower = text.toLowerCase();
  const wanted = search.toLowerCase();
  // Where lower case is of another length, positions would not match: then nothing is marked.
  if (lower.length !== text.length) return shown(text, "\t");
  const parts = [];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(
      <Fragment key={`before ${at}`}>{shown(text.slice(from, at), "\t")}</Fragment>,
      <mark key={at}>{shown(text.slice(at, at + wanted.length), "\t")}</mark>,
    );
    from = at + wanted.length;
  }
  return [...parts, <Fragment key="rest">{shown(text.slice(from), "\t")}</Fragment>];
}
