// SPDX-License-Identifier: Apache-2.0
// A PATH of a machine that is not ours: the utilities of POSIX and what a case grants, nothing else. What GNU adds is refused
// as BSD does, and a utility that needs no input reads all of it, as some do.

import fs from "node:fs";
import path from "node:path";

const PLAIN =
  "basename cat cut dd df dirname env expr kill ln printf ps rm rmdir sh sleep tail tee touch tr umask uniq wc od";
const GNU = "awk cp date find grep head ls mktemp mv sed sort stat xargs";
const GREEDY = "chmod chown id mkdir uname";
/** What the script needs beside POSIX. */
const GRANTED = "curl tar gzip sha256sum";

const REFUSING = `for each in "$@"; do case "$NAME $each" in
  "sed -i"|"sed -i."*|"sed -r"|"sed -z"|"date -d"*|"date -I"*|"stat -c"*|"grep -P"*|"cp -a"|"head -c-"*|"sort -V"|"xargs -r"|"xargs -d"*|"mktemp -p"*|"find -printf"|*" --"?*)
    echo "$NAME: illegal option -- $each" >&2; exit 64;; esac; done`;

export type Granted = { readonly without?: readonly string[]; readonly extra?: Readonly<Record<string, string>> };

/** extra: programs of the test's own, as the text of a shell script. Returns the directory. */
export function hostilePath(directory: string, { without = [], extra = {} }: Granted = {}): string {
  fs.mkdirSync(directory, { recursive: true });
  fs.chmodSync(directory, 0o755);
  const script = (name: string, text: string) =>
    fs.writeFileSync(path.join(directory, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  for (const name of [PLAIN, GNU, GREEDY, GRANTED].flatMap((names) => names.split(" "))) {
    if (without.includes(name)) continue;
    const real = whereIs(name);
    if (real === undefined) continue;
    if (GNU.includes(name)) script(name, `${REFUSING.replaceAll("$NAME", name)}\nexec ${real} "$@"`);
    else if (GREEDY.includes(name)) script(name, `cat >/dev/null\nexec ${real} "$@"`);
    else fs.symlinkSync(real, path.join(directory, name));
  }
  for (const [name, text] of Object.entries(extra)) {
    fs.rmSync(path.join(directory, name), { force: true });
    script(name, text);
  }
  return directory;
}

export function whereIs(name: string): string | undefined {
  return ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    .map((folder) => path.join(folder, name))
    .find((file) => fs.existsSync(file));
}
