// SPDX-License-Identifier: Apache-2.0
// status: what needs attention first, then nodes and jobs.

import type { Command } from "commander";
import { nodeTable } from "./node-commands.ts";
import { example, printing, type Tree } from "./command.ts";
import { visible } from "./table.ts";
import { colours, connect, printJson } from "./terminal.ts";

export function addStatusCommand(program: Command, { terminal }: Tree): void {
  const status = printing(program.command("status"))
    .description("What needs attention, nodes and jobs")
    .action(async ({ json }) => {
      const client = connect(terminal);
      const [overview, { items }] = await Promise.all([client.call("overview", {}), client.call("nodeList", {})]);
      if (json === true) return printJson(terminal, { ...overview, controller: client.baseUrl, nodeList: items });
      const colour = colours(terminal);
      const { stdout } = terminal;
      for (const { level, text, advice } of overview.attention) {
        const mark = level === "error" ? colour.red("✗") : colour.yellow("!");
        stdout.write(`${mark} ${visible(text)}\n  ${colour.dim(visible(advice))}\n`);
      }
      if (overview.attention.length > 0) stdout.write("\n");
      const inService = items.filter((node) => node.status !== "retired");
      stdout.write(inService.length === 0 ? "No node yet: holdfast node pair NAME\n" : nodeTable(terminal, inService));
      const jobs = Object.entries(overview.jobs).filter(([, count]) => count > 0);
      stdout.write(
        `\njobs        ${jobs.length === 0 ? "none yet: holdfast job run -- echo hello" : jobs.map(([state, count]) => `${count} ${state}`).join(" · ")}\n`,
      );
      stdout.write(`controller  ${client.baseUrl}, version ${overview.version}\n`);
    });
  example(status, "holdfast status", "holdfast status --json");
}
