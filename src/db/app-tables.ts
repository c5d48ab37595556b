// SPDX-License-Identifier: Apache-2.0
// The tables of schema app and what a backup must know about them, from the catalog of the very database: no list to forget.

import pg from "pg";

export type AppTable = { readonly name: string; readonly columns: readonly string[] };

/** Generated columns are left out, and those that number transactions: these belong to the cluster that gave the numbers. */
const TABLES = `
select c.relname as name,
       array(select a.attname::text from pg_attribute a
              where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.atttypid <> 'xid8'::regtype
              order by a.attnum) as columns
  from pg_class c where c.relnamespace = to_regnamespace('app') and c.relkind = 'r' order by c.relname`;

export async function listTables(client: pg.Client): Promise<readonly AppTable[]> {
  const { rows } = await client.query<AppTable>(TABLES);
  const others = await client.query<{ name: string }>(
    "select relname as name from pg_class where relnamespace = to_regnamespace('app') and relkind in ('S', 'f', 'm')",
  );
  const [other] = others.rows;
  if (other !== undefined)
    throw new Error(`bug: a backup knows tables only, and app.${other.name} is something else that holds data`);
  return rows;
}

type ForeignKey = {
  readonly table: string;
  readonly columns: readonly string[];
  readonly target: string;
  readonly target_columns: readonly string[];
};

const FOREIGN_KEYS = `
select k.conrelid::regclass::text as table, k.confrelid::regclass::text as target,
       array(select a.attname::text from unnest(k.conkey) with ordinality as u(number, place)
               join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.number order by u.place) as columns,
       array(select a.attname::text from unnest(k.confkey) with ordinality as u(number, place)
               join pg_attribute a on a.attrelid = k.confrelid and a.attnum = u.number order by u.place) as target_columns
  from pg_constraint k where k.contype = 'f' and k.connamespace = to_regnamespace('app') order by k.conname`;

/** A sentence for each foreign key that does not hold. Rows with a null in it refer to nothing (MATCH SIMPLE). */
export async function brokenReferences(client: pg.Client): Promise<readonly string[]> {
  const { rows: keys } = await client.query<ForeignKey>(FOREIGN_KEYS);
  const broken: string[] = [];
  for (const key of keys) {
    const set = key.columns.map((column) => `c.${pg.escapeIdentifier(column)} is not null`);
    const same = key.columns.map(
      (column, index) => `p.${pg.escapeIdentifier(key.target_columns[index] ?? "")} = c.${pg.escapeIdentifier(column)}`,
    );
    const { rows } = await client.query<{ count: string }>(
      `select count(*) from ${key.table} c where ${set.join(" and ")}
          and not exists (select from ${key.target} p where ${same.join(" and ")})`,
    );
    if (rows[0]?.count !== "0")
      broken.push(`${rows[0]?.count} rows of ${key.table} refer to rows of ${key.target} that are not there`);
  }
  return broken;
}
