// SPDX-License-Identifier: Apache-2.0
// Runs a vendor's tool in a child with a deadline: a tool that hangs in its driver must not hang the agent.

import { spawn } from "node:child_process";
import type { ToolRun } from "./device.ts";

export const TOOL_DEADLINE_MS = 5_000;
export const TOOL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/wsl/lib:/opt/rocm/bin";
const OUTPUT_LENGTH_MAX = 2 * 1024 * 1024;

export type ToolOptions = { readonly deadlineMs?: number; readonly searchPath?: string };

/** Never rejects. The child gets no input and only PATH. */
export function runTool(
  command: string,
  parameters: readonly string[],
  { deadlineMs = TOOL_DEADLINE_MS, searchPath = TOOL_PATH }: ToolOptions = {},
): Promise<ToolRun> {
  return new Promise((resolve) => {
    const child = spawn(command, parameters, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: searchPath, LC_ALL: "C" },
    });
    let output = "";
    let complaint = "";
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
      if (complaint.length < OUTPUT_LENGTH_MAX) complaint += text;
    });
    child.once("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      resolve(error.code === "ENOENT" ? { kind: "missing" } : { kind: "failed", status: null, message: error.message });
    });
    child.once("close", (status) => {
      clearTimeout(timer);
      // With one lost card among others nvidia-smi fails and still lists the others.
      if (status === 0 || /^[0-9a-f]{4,8}:/im.test(output)) return resolve({ kind: "answered", output, complaint });
      const message = firstLine(complaint) ?? firstLine(output) ?? `ended with status ${status}`;
      resolve({ kind: "failed", status, message });
    });
  });
}

function firstLine(text: string): string | undefined {
  return text
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line !== "");
}
