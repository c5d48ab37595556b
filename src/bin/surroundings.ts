// SPDX-License-Identifier: Apache-2.0
// How this machine's devices are looked at: as the account of this process, opened by a program of this folder.

import { fileURLToPath } from "node:url";
import type { Opener } from "../devices/access.ts";
import type { Surroundings } from "../devices/devices.ts";
import { currentAccount } from "../launcher/account.ts";

export function ownSurroundings(): Surroundings {
  return { opener: ownOpener(), account: currentAccount().name };
}

export function ownOpener(): Opener {
  return [process.execPath, fileURLToPath(new URL("open-nodes.js", import.meta.url))];
}
