// SPDX-License-Identifier: Apache-2.0
// The tools above a log: search with count, next and previous; follow; download of the whole as text.

import { useState } from "react";
import { PAGE_MAX } from "../../../src/protocol/limits.ts";
import { api } from "../app/api.ts";
import { ActionButton } from "../parts/button.tsx";
import { FailureOf } from "../parts/failure.tsx";

export type LogToolsProps = {
  readonly jobId: string;
  readonly search: string;
  readonly onSearch: (text: string) => void;
  readonly found: { readonly count: number; readonly current: number };
  readonly onStep: (step: number) => void;
  readonly isFollowing: boolean;
  readonly onFollow: (isFollowing: boolean) => void;
};

export function LogTools({ jobId, search, onSearch, found, onStep, isFollowing, onFollow }: LogToolsProps) {
  const [isHinted, setHinted] = useState(false);
  const none = found.count === 0 ? "nothing is found" : undefined;
  return (
    <div className="log-tools">
      <input
        type="search"
        aria-label="Search in the output"
        placeholder="Search in the output  ( / )"
        value={search}
        onChange={(event) => onSearch(event.target.value)}
        onFocus={() => setHinted(true)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onStep(event.shiftKey ? -1 : 1);
        }}
        title={isHinted ? "Enter: next, Shift+Enter: previous" : undefined}
      />
      <span className="found" role="status">
        {search === "" ? "" : foundText(found)}
      </span>
      {search !== "" && (
        <>
          <ActionButton onClick={() => onStep(-1)} whyNot={none} label="Previous match">
            ↑
          </ActionButton>
          <ActionButton onClick={() => onStep(1)} whyNot={none} label="Next match">
            ↓
          </ActionButton>
        </>
      )}
      <label className="check">
        <input type="checkbox" checked={isFollowing} onChange={(event) => onFollow(event.target.checked)} /> Follow
      </label>
      <Download jobId={jobId} />
    </div>
  );
}

function foundText({ count, current }: LogToolsProps["found"]): string {
  if (count === 0) return "no line";
  return current < 0 ? `${count} ${count === 1 ? "line" : "lines"}` : `${current + 1} of ${count}`;
}

/** All pages of the log, the very bytes where a line is not UTF-8. */
async function wholeLog(jobId: string): Promise<Blob> {
  const parts: BlobPart[] = [];
  let after: string | undefined;
  for (;;) {
    const query = { limit: PAGE_MAX, ...(after === undefined ? {} : { after }) };
    const { chunks } = await api.call("jobLogs", { params: { jobId }, query });
    for (const { text, base64 } of chunks) {
      parts.push(base64 === undefined ? text : Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
    }
    const last = chunks.at(-1)?.cursor;
    if (last === undefined) return new Blob(parts, { type: "text/plain" });
    after = last;
  }
}

function Download({ jobId }: { readonly jobId: string }) {
  const [state, setState] = useState<{ isPending: boolean; error: Error | null }>({ isPending: false, error: null });
  const download = async (): Promise<void> => {
    setState({ isPending: true, error: null });
    try {
      const url = URL.createObjectURL(await wholeLog(jobId));
      const link = document.createElement("a");
      link.href = url;
      link.download = `${jobId}.log`;
      link.click();
      URL.revokeObjectURL(url);
      setState({ isPending: false, error: null });
    } catch (error) {
      setState({ isPending: false, error: error instanceof Error ? error : new Error(String(error)) });
    }
  };
  return (
    <>
      <ActionButton onClick={() => void download()} isPending={state.isPending}>
        Download
      </ActionButton>
      <FailureOf error={state.error} />
    </>
  );
}
