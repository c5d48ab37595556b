// SPDX-License-Identifier: Apache-2.0
// Whom a job runs as: the account of the agent itself, or one for jobs alone. Rule: it comes from the system, never from the
// agent's environment.

import fs from "node:fs";
import os from "node:os";
import { codeOf, Failure } from "../std/errors.ts";
import type { JobAccount } from "./launch-socket.ts";
import type { Account } from "./spec.ts";

/** The account of this process, as the system knows it; a container may have a uid without a name. */
export function currentAccount(): Account {
  try {
    const { username, homedir } = os.userInfo();
    return { name: username, home: homedir };
  } catch (error) {
    if (codeOf(error) !== "ERR_SYSTEM_ERROR") throw error;
    return { name: String(process.getuid?.() ?? 0), home: "/" };
  }
}

/** An account for jobs alone, from /etc/passwd as the shim reads it too. Throws config_invalid, with what to do. */
export function jobAccount(name: string): JobAccount {
  const found = findInPasswd(fs.readFileSync("/etc/passwd", "utf8"), name);
  if (found === undefined)
    throw new Failure(
      "config_invalid",
      `there is no account ${name} for jobs in /etc/passwd: make it as the first lines of holdfast unit agent say`,
    );
  const { uid, groupId, home } = found;
  if (uid === 0 || uid === process.getuid?.())
    throw new Failure(
      "config_invalid",
      `jobs cannot run as ${name}: an account of its own is needed, which is not root`,
    );
  if (process.getgroups?.().includes(groupId) !== true)
    throw new Failure(
      "config_invalid",
      `this account is not in the group of ${name} (${groupId}), by which it shares files with jobs: SupplementaryGroups= of the unit`,
    );
  return { name, home, groupId };
}

/** Source: passwd(5). */
export function findInPasswd(
  text: string,
  name: string,
): { readonly uid: number; readonly groupId: number; readonly home: string } | undefined {
  for (const line of text.split("\n")) {
    const [account, , uid = "", groupId = "", , home = ""] = line.split(":");
    if (account !== name || !/^\d+$/.test(uid) || !/^\d+$/.test(groupId)) continue;
    return { uid: Number(uid), groupId: Number(groupId), home: home === "" ? "/" : home };
  }
  return undefined;
}
