// SPDX-License-Identifier: Apache-2.0
// Every row of the tables of schema app as the line that COPY makes of it, sorted: to compare two databases whole.

import { text } from "node:stream/consumers";
import pg from "pg";
import { to } from "pg-copy-streams";
import { listTables } from "../../src/db/app-tables.ts";
import { nameOf, SESSION } from "../../src/db/backup.ts";
import type { ConnectionOptions } from "../../src/db/pool.ts";

type Columns = { readonly name: string; readonly columns: readonly string[] };

/** Table to lines; of these tables and columns, or of all there are. */
export async function tableLines(
  connection: ConnectionOptions,
  tables?: readonly Columns[],
): Promise<Record<string, readonly string[]>> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    await client.query(SESSION);
    const lines: Record<string, readonly string[]> = {};
    for (const table of tables ?? (await listTables(client)))
      lines[table.name] = linesOf(await text(client.query(to(`copy ${nameOf(table)} to stdout`))));
    return lines;
  } finally {
    await client.end();
  }
}

export function linesOf(copied: string): readonly string[] {
  return copied.split("\n").slice(0, -1).toSorted();
}
