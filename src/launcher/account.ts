// SPDX-License-Identifier: Apache-2.0
// Whom a job runs as: the account of the agent itself. Rule: it comes from the system, never from the agent's environment.

import os from "node:os";
import { codeOf } from "../std/errors.ts";
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
