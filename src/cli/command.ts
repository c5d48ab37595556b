// SPDX-License-Identifier: Apache-2.0
// What every command file is given and shares: the terminal, the programs, help with examples, --json.

import type { Command } from "commander";
import type { Programs } from "./programs.ts";
import type { Terminal } from "./terminal.ts";

export type Tree = {
  readonly terminal: Terminal;
  readonly programs: Programs;
  readonly version: string;
  /** Takes the exit code of a command that has one of its own. */
  readonly setExitCode: (code: number) => void;
};

/** Ends the help of a command with examples. */
export function example(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText(
    "after",
    `\nExample${lines.length > 1 ? "s" : ""}:\n${lines.map((line) => `  ${line}\n`).join("")}`,
  );
}

/** A command that prints one thing: a table for people, the whole of it with --json. */
export function printing(command: Command): Command {
  return command.option("--json", "print JSON");
}
