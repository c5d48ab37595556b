// SPDX-License-Identifier: Apache-2.0
// Runs a vendor's tool in a child with a deadline: a tool that hangs in its driver must not hang the agent.

import { spawn } from "node:child_process";
import type { ToolRun } from "./nvidia.ts";

export const TOOL_DEADLINE_MS = 5_000;
const OUTPUT_LENGTH_MAX = 256 * 1024;

/** Never rejects. The child gets no input and only PATH. */
export function runTool(
  command: string,
  parameters: readonly string[],
  deadlineMs: number = TOOL_DEADLINE_MS,
): Promise<ToolRun> {
  return new Promise((resolve) => {
    const child = spawn(command, parameters, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: TOOL_PATH, LC_ALL: "C" },
    });
    let output = "";
    let errors = "";
    // Not on its end: a child stuck in the kernel does not die by SIGKILL either.
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      child.unref();
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ kind: "hung", afterMs: deadlineMs });
    }, deadlineMs);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (output.length < OUTPUT_LENGTH_MAX) output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (errors.length < OUTPUT_LENGTH_MAX) errors += text;
    });
    child.once("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      resolve(error.code === "ENOENT" ? { kind: "missing" } : { kind: "failed", message: error.message });
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      // With one lost card among others it fails and still lists the others.
      if (code === 0 || /^[0-9a-f]{4,8}:/im.test(output)) return resolve({ kind: "answered", output });
      resolve({ kind: "failed", message: firstLine(output) ?? firstLine(errors) ?? `ended with status ${code}` });
    });
  });
}

const TOOL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/wsl/lib:/opt/rocm/bin";

function firstLine(text: string): string | undefined {
  return text
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line !== "");
}
