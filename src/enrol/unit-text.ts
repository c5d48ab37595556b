// SPDX-License-Identifier: Apache-2.0
// What the texts of systemd units share.

/** For a command line of systemd: see systemd.service(5), "Command lines". */
export function quote(word: string): string {
  if (/^[\w@+=:,./-]+$/.test(word)) return word;
  return `"${word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%").replaceAll("$", "$$$$")}"`;
}
