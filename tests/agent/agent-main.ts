// SPDX-License-Identifier: Apache-2.0
// The agent as a process of its own for tests: options as JSON in the only argument, exit codes as the command has them.

import { runAgentCommand, type AgentCommand } from "../../src/bin/agent.ts";
import { errorRow } from "../../src/protocol/errors.ts";
import { codeOf, messageOf } from "../../src/std/errors.ts";

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
try {
  process.exitCode = await runAgentCommand(
    JSON.parse(process.argv[2] ?? "{}") as AgentCommand,
    process.env,
    stop.signal,
  );
} catch (error) {
  process.stderr.write(`${JSON.stringify({ failure: codeOf(error), message: messageOf(error) })}\n`);
  process.exitCode = errorRow(codeOf(error)).exit;
}
