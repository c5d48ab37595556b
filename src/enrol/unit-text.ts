// SPDX-License-Identifier: Apache-2.0
// What the texts of systemd units share.

/** system: by root, with accounts of its own. user: in a user's own systemd, without root. */
export type Layout = "system" | "user";

/** For a command line of systemd: see systemd.service(5), "Command lines". */
export function quote(word: string): string {
  if (/^[\w@+=:,./-]+$/.test(word)) return word;
  return `"${word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%").replaceAll("$", "$$$$")}"`;
}
