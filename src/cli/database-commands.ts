// SPDX-License-Identifier: Apache-2.0
// db migrate | status: the schema of the database that DATABASE_OWNER_URL (else DATABASE_URL) names.

import type { Command } from "commander";
import { example, printing, type Tree } from "./command.ts";
import { table } from "./table.ts";
import { printJson } from "./terminal.ts";

export function addDatabaseCommands(program: Command, { terminal, programs }: Tree): void {
  const db = program.command("db").description("The schema of the database");
  example(db, "holdfast db status");

  const migrate = printing(db.command("migrate"))
    .description("Apply the migrations that are missing")
    .action(async ({ json }) => {
      const applied = await programs.dbMigrate();
      if (json === true) return printJson(terminal, { applied });
      terminal.stdout.write(applied.length === 0 ? "The schema is up to date.\n" : `Applied ${applied.join(", ")}.\n`);
    });
  example(migrate, "DATABASE_OWNER_URL=postgres://owner@db/holdfast holdfast db migrate");

  const status = printing(db.command("status"))
    .description("Show which migrations are applied and which are missing")
    .action(async ({ json }) => {
      const found = await programs.dbStatus();
      if (json === true) return printJson(terminal, found);
      const rows = [
        ...found.applied.map((row) => [row.name, `applied ${row.appliedAt}`]),
        ...found.pending.map((name) => [name, "missing: run holdfast db migrate"]),
      ];
      terminal.stdout.write(table(["MIGRATION", "STATE"], rows));
    });
  example(status, "DATABASE_URL=postgres://holdfast@db/holdfast holdfast db status");
}
