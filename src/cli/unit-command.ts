// SPDX-License-Identifier: Apache-2.0
// unit controller | agent: prints a systemd unit for this installation.

import type { Command } from "commander";
import { example, type Tree } from "./command.ts";
import { visible } from "./table.ts";

export function addUnitCommand(program: Command, { terminal, programs }: Tree): void {
  const unit = program.command("unit").description("systemd units for this installation");
  example(unit, "holdfast unit controller > /etc/systemd/system/holdfast-controller.service");
  const controller = unit
    .command("controller")
    .description("Print the unit of a controller; its first lines say how to install it")
    .option(
      "--embedded",
      "with its own PostgreSQL in /var/lib/holdfast; else DATABASE_URL of /etc/holdfast/controller.env",
    )
    .option("--account <name>", "the account that it runs as", "holdfast")
    .option("--listen <host:port>", "address of the controller", "127.0.0.1:7440")
    .action((options: { embedded?: boolean; account: string; listen: string }) => {
      terminal.stdout.write(programs.controllerUnit({ ...options, isEmbedded: options.embedded === true }));
    });
  example(controller, "holdfast unit controller --embedded --listen 10.0.0.5:7440");
  const agent = unit
    .command("agent")
    .description("Print the unit of an agent; its first lines say how to install it")
    .option("--alone", "scenes only, without a controller")
    .option("--account <name>", "the account that it, its jobs and its models run as", "holdfast")
    .option("--root <directory>", "the root that the unit names", "/var/lib/holdfast")
    .action(async ({ alone, ...options }: { alone?: boolean; account: string; root: string }) => {
      const { text, warnings } = await programs.agentUnit({ ...options, isAlone: alone === true });
      for (const warning of warnings) terminal.stderr.write(`${visible(warning)}\n`);
      terminal.stdout.write(text);
    });
  example(agent, "holdfast unit agent --alone --account llm --root /srv/llm");
}
