// SPDX-License-Identifier: Apache-2.0
// The script that sets the rights of the device nodes, device-nodes.sh, with this machine's values: POSIX sh, because Node cannot
// run in udevd's sandbox. It is run when a driver is bound, at boot, after suspend, and when a node was changed.

import fs from "node:fs";
import { assert } from "../std/assert.ts";
import { CHANGES_FILE, type Guarded, MARK, ownDevices } from "./protection.ts";

export function hookText(group: string, devices: readonly Guarded[]): string {
  const own = ownDevices(devices);
  const values: Readonly<Record<string, string>> = {
    MARK,
    GROUP: group,
    CARDS: own.map(({ address }) => address).join(" "),
    OTHERS: own.some(({ vendor }) => vendor === "amd") ? "/dev/kfd" : "",
    CHANGES: CHANGES_FILE,
  };
  const template = fs.readFileSync(new URL("device-nodes.sh", import.meta.url), "utf8");
  return template.replaceAll(/@([A-Z]+)@/g, (_, name: string) => {
    const value = values[name];
    assert(value !== undefined && /^[\w:./ -]*$/.test(value), `${name} has a value that a script may hold`);
    return value;
  });
}
