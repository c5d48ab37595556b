// SPDX-License-Identifier: Apache-2.0
// enrol, hidden: the bootstrap script's other half.

import { type Command, Option } from "commander";
import { example, type Tree } from "./command.ts";

export function addEnrolCommand(program: Command, { programs, terminal }: Tree): void {
  const enrol = program
    .command("enrol", { hidden: true })
    .description("Pair this machine with the code on standard input; the bootstrap script runs this")
    .option("--join <url>", "the controller")
    .option("--leave", "tell the controller that this node is uninstalled")
    .addOption(new Option("--root <directory>", "where everything of this machine lives (default: HOLDFAST_ROOT)"))
    .action(async (options: { join?: string; leave?: boolean; root?: string }) => {
      const code = options.leave === true ? "" : (await terminal.readFile("-")).trim();
      const line = await programs.enrol({ ...options, ...(code === "" ? {} : { code }) });
      terminal.stdout.write(`${line}\n`);
    });
  example(enrol, "holdfast enrol --join https://box.lan:7440 < pairing-code");
}
