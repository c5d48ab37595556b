// SPDX-License-Identifier: Apache-2.0
// Text for people, on a terminal and on a page: distances in time, command lines, and what others wrote made safe to look at.

export function ago(time: string | null, now: number): string {
  if (time === null) return "never";
  const seconds = Math.round((now - Date.parse(time)) / 1000);
  if (seconds < 0) return `in ${span(-seconds)}`;
  return seconds < 2 ? "now" : `${span(seconds)} ago`;
}

export function span(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** What others wrote: control characters, which could write anything anywhere, are shown instead of obeyed. */
export function visible(text: string): string {
  return text.replaceAll("\n", "⏎").replace(/[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** A command on one line; arguments with anything unusual are quoted as a shell would need it. */
export function shellLine(command: readonly string[]): string {
  return command
    .map((part) => (/^[\w@%+=:,./-]+$/.test(part) ? part : `'${part.replaceAll("'", String.raw`'\''`)}'`))
    .join(" ");
}

/** The same for a terminal: shortened, and control characters are shown. */
export function commandLine(command: readonly string[], length = 60): string {
  return shorten(visible(shellLine(command)), length);
}

export function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
