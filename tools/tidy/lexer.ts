// SPDX-License-Identifier: Apache-2.0
// Blanks comments and string contents out of TypeScript, so that the rules look at code and not at prose.
// Rule: every character keeps its place and every newline stays, so a position means the same line in each of the views.

export type Views = {
  /** Comments blanked, strings as they are. */
  readonly withoutComments: string;
  /** Comments and the contents of strings, templates and regular expressions blanked. */
  readonly bare: string;
};

type Span = { readonly kind: "comment" | "literal"; readonly from: number; readonly to: number };

/** After one of these a slash begins a regular expression, after anything else it divides. */
const BEFORE_REGEX = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|await|yield|else))\s*$/;
const REGEX = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y;

export function viewsOf(text: string): Views {
  const spans = spansOf(text);
  return {
    withoutComments: blank(
      text,
      spans.filter((span) => span.kind === "comment"),
    ),
    bare: blank(text, spans),
  };
}

function blank(text: string, spans: readonly Span[]): string {
  let out = "";
  let at = 0;
  for (const { from, to } of spans) {
    out += text.slice(at, from) + text.slice(from, to).replace(/[^\n]/g, " ");
    at = to;
  }
  return out + text.slice(at);
}

function spansOf(text: string): readonly Span[] {
  const spans: Span[] = [];
  /** For each template literal that is open around us: how many braces are open inside its ${}. */
  const templates: number[] = [];
  let at = 0;
  const literal = (from: number, to: number): void => {
    if (to > from) spans.push({ kind: "literal", from, to });
    at = to + 1;
  };
  while (at < text.length) {
    const character = text[at];
    const two = text.slice(at, at + 2);
    const depth = templates.at(-1);
    if (two === "//" || two === "/*") {
      const to = commentEnd(text, at, two);
      spans.push({ kind: "comment", from: at, to });
      at = to;
    } else if (character === '"' || character === "'") {
      literal(at + 1, quoteEnd(text, at + 1, character));
    } else if (character === "`") {
      literal(at + 1, templateEnd(text, at + 1, templates));
    } else if (character === "}" && depth === 0) {
      templates.pop();
      literal(at + 1, templateEnd(text, at + 1, templates));
    } else if (
      character === "/" &&
      BEFORE_REGEX.test(text.slice(Math.max(0, at - 40), at)) &&
      regexEnd(text, at) > at
    ) {
      literal(at + 1, regexEnd(text, at) - 1);
    } else {
      if (depth !== undefined && character === "{") templates[templates.length - 1] = depth + 1;
      if (depth !== undefined && character === "}") templates[templates.length - 1] = depth - 1;
      at++;
    }
  }
  return spans;
}

function commentEnd(text: string, at: number, opening: string): number {
  const end = opening === "//" ? text.indexOf("\n", at) : text.indexOf("*/", at + 2);
  if (end < 0) return text.length;
  return opening === "//" ? end : end + 2;
}

function quoteEnd(text: string, from: number, quote: string): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === quote || text[at] === "\n") return at;
  }
  return text.length;
}

/** The end of a stretch of template text: at its closing backtick, or at the brace of a ${, which is then open. */
function templateEnd(text: string, from: number, templates: number[]): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "`") return at;
    else if (text[at] === "$" && text[at + 1] === "{") {
      templates.push(0);
      return at + 1;
    }
  }
  return text.length;
}

function regexEnd(text: string, at: number): number {
  REGEX.lastIndex = at;
  return REGEX.test(text) ? REGEX.lastIndex : at;
}
