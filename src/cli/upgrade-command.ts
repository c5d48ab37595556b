// SPDX-License-Identifier: Apache-2.0
// upgrade --check: proof that an upgrade or a restart of the agent disturbed no model and no gateway.

import type { Command } from "commander";
import { Failure } from "../std/errors.ts";
import { example, printing, type Tree } from "./command.ts";
import { visible } from "./table.ts";
import { printJson } from "./terminal.ts";

export function addUpgradeCommand(program: Command, { terminal, programs, setExitCode }: Tree): void {
  const upgrade = printing(program.command("upgrade"))
    .description("Prove that an upgrade disturbs no model: before it and after it")
    .option("--check", "note who runs; the next time, compare: exit 1 if any process is another one")
    .option("--root <directory>", "the root whose scenes are meant (default: HOLDFAST_ROOT)")
    .action(async ({ check, json, ...options }: { check?: boolean; json?: boolean; root?: string }) => {
      if (check !== true)
        throw new Failure(
          "usage",
          "replace the files of the installation, restart the agent; upgrade --check proves the rest",
        );
      const found = await programs.upgradeCheck(options);
      if (found.kind === "changed") setExitCode(1);
      if (json === true) return printJson(terminal, found);
      terminal.stdout.write(found.lines.map((line) => `${visible(line)}\n`).join(""));
    });
  example(upgrade, "holdfast upgrade --check", "systemctl restart holdfast-agent && holdfast upgrade --check");
}
