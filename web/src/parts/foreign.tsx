// SPDX-License-Identifier: Apache-2.0
// What others wrote, as text only. Rule: control characters and direction overrides are shown by name, never obeyed, and
// right-to-left text does not turn what stands around it.

import { Fragment, type ReactNode } from "react";

/** ASCII's own names; not every font has the pictures of U+2400. */
const NAMES =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(
    " ",
  );
const CONTROL = /([\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069])/u;

function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return NAMES[code] ?? (code === 0x7f ? "DEL" : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`);
}

/** Text with its control characters as marks of their own; `kept` are left as they are. */
export function shown(text: string, kept = ""): ReactNode {
  if (!CONTROL.test(text)) return text;
  return text.split(CONTROL).map((part, index) => (
    // The parts of one text never move.
    // oxlint-disable-next-line react/no-array-index-key
    <Fragment key={index}>
      {index % 2 === 0 || kept.includes(part) ? part : <span className="control">{nameOf(part)}</span>}
    </Fragment>
  ));
}

export function Foreign({ text, isCode = false }: { readonly text: string; readonly isCode?: boolean }) {
  return <bdi className={isCode ? "code" : undefined}>{shown(text)}</bdi>;
}

/** Several lines of somebody else's text. */
export function ForeignBlock({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <pre className="block" dir="ltr" tabIndex={0} aria-label={label}>
      {shown(text, "\n\t")}
    </pre>
  );
}
