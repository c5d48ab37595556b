// SPDX-License-Identifier: Apache-2.0
// context show | use | list: which controller the command line talks to. A token is never printed.

import type { Command } from "commander";
import { Failure } from "../std/errors.ts";
import { contextFileFrom, readContexts, useContext } from "./context-file.ts";
import { example, printing, type Tree } from "./command.ts";
import { fields, table } from "./table.ts";
import { connection, printJson, type Terminal } from "./terminal.ts";

export function addContextCommands(program: Command, { terminal }: Tree): void {
  const context = program.command("context").description("Which controller the command line talks to");
  example(context, "holdfast context show", "holdfast context use local");

  const show = printing(context.command("show", { isDefault: true }))
    .description("Show the current one")
    .action(({ json }) => {
      const { url } = connection(terminal);
      const shown = { name: nameOf(terminal), url, file: contextFileFrom(terminal.env) };
      if (json === true) return printJson(terminal, shown);
      terminal.stdout.write(
        fields([
          ["context", shown.name],
          ["controller", url],
          ["file", shown.file],
        ]),
      );
    });
  example(show, "holdfast context show --json");

  const list = printing(context.command("list"))
    .description("List them")
    .action(({ json }) => {
      const known = readContexts(contextFileFrom(terminal.env));
      const rows = Object.entries(known?.contexts ?? {}).map(([name, { url }]) => ({
        name,
        url,
        current: name === known?.current,
      }));
      if (json === true) return printJson(terminal, rows);
      if (rows.length === 0) throw new Failure("no_context", "there is no context yet: npm start writes one");
      terminal.stdout.write(
        table(
          ["", "NAME", "CONTROLLER"],
          rows.map((row) => [row.current ? "*" : "", row.name, row.url]),
        ),
      );
    });
  example(list, "holdfast context list");

  const use = context
    .command("use")
    .argument("<name>")
    .description("Switch to another one")
    .action((name: string) => {
      useContext(contextFileFrom(terminal.env), name);
      terminal.stdout.write(`Now using ${name}.\n`);
    });
  example(use, "holdfast context use rack-2");
}

function nameOf(terminal: Terminal): string {
  if (terminal.env["HOLDFAST_URL"] !== undefined && terminal.env["HOLDFAST_TOKEN"] !== undefined)
    return "(environment)";
  return readContexts(contextFileFrom(terminal.env))?.current ?? "";
}
