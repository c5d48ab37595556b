// SPDX-License-Identifier: Apache-2.0
// Splits one line into arguments as a POSIX shell would quote them (XCU 2.2), and nothing else of a shell: no variables, no
// patterns, no pipes. Rule: what would mean something in a shell is taken as text, and said.

export type Split = {
  readonly words: readonly string[];
  /** Why it cannot be split. */
  readonly problem?: string;
  /** What a shell would have done and nobody does here. */
  readonly warning?: string;
};

const SHELL_ONLY = /[|&;<>$`*?~()]/;

export function splitCommand(line: string): Split {
  const words: string[] = [];
  let word: string | undefined;
  let unquoted = "";
  for (let at = 0; at < line.length; at++) {
    const character = line[at] ?? "";
    if (character === "'" || character === '"') {
      const quoted = readQuoted(line, at, character);
      if (quoted === undefined) return { words, problem: `the ${character} at ${at + 1} is not closed` };
      word = (word ?? "") + quoted.text;
      at = quoted.end;
    } else if (character === "\\") {
      if (at + 1 >= line.length) return { words, problem: "the last \\ has nothing to quote" };
      word = (word ?? "") + (line[++at] ?? "");
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? "") + character;
      unquoted += character;
    }
  }
  if (word !== undefined) words.push(word);
  const special = SHELL_ONLY.exec(unquoted)?.[0];
  if (special === undefined) return { words };
  return { words, warning: `No shell reads this: ${special} is passed as it is. For a shell, name one: sh -c '…'` };
}

function readQuoted(
  line: string,
  from: number,
  quote: string,
): { readonly text: string; readonly end: number } | undefined {
  let text = "";
  for (let at = from + 1; at < line.length; at++) {
    const character = line[at] ?? "";
    if (character === quote) return { text, end: at };
    const next = line[at + 1] ?? "";
    if (quote === '"' && character === "\\" && /["\\$`]/.test(next)) {
      text += next;
      at++;
    } else text += character;
  }
  return undefined;
}
