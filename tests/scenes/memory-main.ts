// SPDX-License-Identifier: Apache-2.0
// An agent for tests that reads the memory of the machine from files of the test, and waits a short time for memory to come back.

import { startScenes } from "../../src/bin/agent-scenes.ts";
import { stderrLog } from "../../src/bin/logs.ts";

const { root, ...memory } = JSON.parse(process.argv[2] ?? "{}") as {
  root: string;
  files: { meminfo: string; mountinfo: string; cgroupOf: string };
  recoveryMs: number;
};

const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
await using _ = await startScenes({ root, env: process.env, log: await stderrLog({}), memory });
process.stderr.write("ready\n");
const keepAlive = setInterval(() => {}, 60_000);
await new Promise((resolve) => stop.signal.addEventListener("abort", resolve, { once: true }));
clearInterval(keepAlive);
