// SPDX-License-Identifier: Apache-2.0
// unit controller: prints a systemd unit for this installation.

import type { Command } from "commander";
import { example, type Tree } from "./command.ts";

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
}
