// SPDX-License-Identifier: Apache-2.0
// The gateway as a node's agent launches it: `node gateway-main.ts --control SOCKET [--drain MS]`. The same as the command
// `holdfast gateway --control`, without the command tree. With NODE_COMPILE_CACHE set to a directory it takes 70 MB instead of
// 105 MB, because types are not stripped at each start.

import { parseArgs } from "node:util";
import { errorRow } from "../protocol/errors.ts";
import { codeOf, messageOf } from "../std/errors.ts";
import { runGateway } from "./gateway.ts";

const text = { type: "string" } as const;
const { values } = parseArgs({ options: { control: text, listen: text, upstream: text, drain: text } });
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
// Whoever launched it may be gone: that must not end it.
process.on("SIGHUP", () => {});
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
try {
  const { drain, ...options } = values;
  const drainMs = drain === undefined ? {} : { drainMs: Number(drain) };
  process.exitCode = await runGateway({ ...options, ...drainMs }, process.env, stop.signal);
} catch (error) {
  process.stderr.write(`holdfast gateway: ${messageOf(error)}\n`);
  process.exitCode = errorRow(codeOf(error)).exit;
}
