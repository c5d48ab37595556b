// SPDX-License-Identifier: Apache-2.0
// The identity file that a shim writes about itself before it waits at the gate. Rule: a launch is signalled only by what this
// file says, proved against the running process (std/process); a file without all of it is damage, never a guess.

import type { Identity } from "../std/process.ts";
import { damaged, parseFields } from "./fields.ts";

export type ShimIdentity = {
  readonly identity: Identity;
  /** Whether a child of the shim was really born in the launch's cgroup: it tried. */
  readonly isInCgroup: boolean;
  /** Its path where the shim made it itself, below its own. */
  readonly cgroup?: string;
};

export function parseIdentity(text: string, place: string): ShimIdentity {
  const fields = parseFields(text, place);
  const pid = fields.count("pid");
  const startTicks = fields.text("startTicks");
  const bootId = fields.text("bootId");
  if (pid <= 1 || !/^\d+$/.test(startTicks) || !/^[0-9a-f-]{36}$/.test(bootId))
    throw damaged(place, "names no process");
  const inode = fields.has("pidfdInode") ? { pidfdInode: fields.text("pidfdInode") } : {};
  const isInCgroup = fields.has("isInCgroup") && fields.flag("isInCgroup");
  const cgroup = fields.has("cgroup") ? { cgroup: fields.text("cgroup") } : {};
  return { identity: { bootId, pid, startTicks, ...inode }, isInCgroup, ...cgroup };
}
