// SPDX-License-Identifier: Apache-2.0
// Starts the PostgreSQL that all test files of a run share, and stops it. Rule: it never outlives the run.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("server-main.ts", import.meta.url));

export type Server = AsyncDisposable & { readonly env: Readonly<Record<string, string>> };

export async function startServer(): Promise<Server> {
  // A session of its own: the terminal's Ctrl-C must not take it away from under tests that are still ending.
  const child = fork(main, [], { detached: true, stdio: ["ignore", "ignore", "pipe", "ipc"] });
  const errors: string[] = [];
  child.stderr?.setEncoding("utf8").on("data", (text: string) => errors.push(text));
  const env = await new Promise<Record<string, string>>((resolve, reject) => {
    child.once("message", (message) => resolve(message as Record<string, string>));
    child.once("error", reject);
    child.once("close", (code) =>
      reject(new Error(`PostgreSQL for the tests did not start (exit code ${code}):\n${errors.join("")}`)),
    );
  });
  return { env, [Symbol.asyncDispose]: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.disconnect();
  await exited;
}
