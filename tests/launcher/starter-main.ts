// SPDX-License-Identifier: Apache-2.0
// An agent that launches one numbered job after the other and says which ones went through the gate, until it is killed.
// The jobs write their number into the ledger, so that a start that happened twice shows.

import path from "node:path";
import type { JobId } from "../../src/std/ids.ts";
import { openLauncher } from "./kit.ts";

const [root = "", first = "0"] = process.argv.slice(2);
const launcher = await openLauncher(root);
process.stdout.write("up\n");
for (let number = Number(first); ; number++) {
  const argv = ["sh", "-c", 'echo "$1" >> "$2"', "job", String(number), path.join(root, "ledger")];
  const prepared = await launcher.prepare({
    purpose: { kind: "attempt", jobId: `job_${number}` as JobId, epoch: "1" },
    argv,
    environment: {},
  });
  if (prepared.kind === "already-launched") continue;
  await prepared.launch.openGate();
  process.stdout.write(`${number}\n`);
}
