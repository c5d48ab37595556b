// SPDX-License-Identifier: Apache-2.0
// Text to copy.

import { useState } from "react";

const COPIED_MS = 2_000;

export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  const [said, setSaid] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("copied");
    } catch {
      // Not over plain HTTP on another host than this one.
      setSaid("select it and copy by hand");
    }
    setTimeout(() => setSaid(""), COPIED_MS);
  };
  return (
    <span className="copy">
      <button type="button" className="small" onClick={() => void copy()} aria-label={`Copy ${what}`}>
        Copy
      </button>
      <span role="status" className="quiet copied">
        {said}
      </span>
    </span>
  );
}

/** A command to run in a terminal, to copy. */
export function CommandLine({ text, what = `the command ${text}` }: { readonly text: string; readonly what?: string }) {
  return (
    <div className="command-line">
      <code>{text}</code>
      <Copy text={text} what={what} />
    </div>
  );
}
