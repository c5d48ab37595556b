// SPDX-License-Identifier: Apache-2.0
// What others wrote, as text only: control characters and direction overrides are shown, never obeyed; and text to copy.

import { useState } from "react";
import { visible } from "../../../src/std/text.ts";

const COPIED_MS = 2_000;

/** Isolated, so that right-to-left text does not turn what stands around it. */
export function Foreign({ text, isCode = false }: { readonly text: string; readonly isCode?: boolean }) {
  return <bdi className={isCode ? "code" : undefined}>{visible(text)}</bdi>;
}

/** Several lines of somebody else's text. */
export function ForeignBlock({ text }: { readonly text: string }) {
  return (
    <pre className="block" dir="ltr" tabIndex={0}>
      {text.split("\n").map(visible).join("\n")}
    </pre>
  );
}

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
export function CommandLine({ text }: { readonly text: string }) {
  return (
    <div className="command-line">
      <code>{text}</code>
      <Copy text={text} what={`the command ${text}`} />
    </div>
  );
}
