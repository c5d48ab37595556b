// SPDX-License-Identifier: Apache-2.0
// The schema that all migrations together make, as text that a person can read in one place: tables, constraints, indexes,
// policies, grants, functions. Written from the catalogs of a migrated database, so that it cannot tell something else.

import type pg from "pg";

const HEAD = `-- SPDX-License-Identifier: Apache-2.0
-- The schema after all migrations, for reading. Written by \`npm run schema\` from a migrated database; a test compares it.
`;

const TABLES = `
select c.relname as name,
  (select string_agg('  ' || quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
       || case when a.attnotnull then ' not null' else '' end || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''), e',\\n' order by a.attnum)
     from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
  coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '') as options,
  case when c.relforcerowsecurity and c.relrowsecurity then 'forced' when c.relrowsecurity then 'enabled' else 'none' end as security
from pg_class c where c.relkind in ('r', 'p') and c.relnamespace = 'app'::regnamespace order by c.relname`;

const LINES = `
select c.relname as name, 1 as part, 'constraint ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid) as line
  from pg_constraint k join pg_class c on c.oid = k.conrelid
 where c.relnamespace = 'app'::regnamespace and k.contype <> 'n'
union all
select tablename, 2, indexdef from pg_indexes
 where schemaname = 'app' and not exists (select 1 from pg_constraint k where k.conname = indexname and k.connamespace = 'app'::regnamespace)
union all
select tablename, 3, format('policy %s %s for %s to %s using (%s) with check (%s)', policyname, lower(permissive), lower(cmd), array_to_string(roles, ', '), qual, with_check)
  from pg_policies where schemaname = 'app'
union all
select table_name, 4, format('grant %s to %s', string_agg(lower(privilege_type), ', ' order by privilege_type), grantee)
  from information_schema.table_privileges where table_schema = 'app' and grantee like 'holdfast\\_%' and grantee <> 'holdfast_owner' group by table_name, grantee
union all
select p.table_name, 5, format('grant %s (%s) to %s', lower(p.privilege_type), string_agg(p.column_name, ', ' order by p.column_name), p.grantee)
  from information_schema.column_privileges p
 where p.table_schema = 'app' and p.grantee like 'holdfast\\_%' and p.grantee <> 'holdfast_owner'
   and not exists (select 1 from information_schema.table_privileges t where t.table_schema = 'app' and t.table_name = p.table_name and t.grantee = p.grantee and t.privilege_type = p.privilege_type)
 group by p.table_name, p.privilege_type, p.grantee
order by 1, 2, 3`;

const FUNCTIONS = `select pg_get_functiondef(oid) as text from pg_proc where pronamespace = 'app'::regnamespace order by proname`;

type TableRow = {
  readonly name: string;
  readonly columns: string;
  readonly options: string;
  readonly security: string;
};

export async function schemaImage(client: pg.Client): Promise<string> {
  const { rows: tables } = await client.query<TableRow>(TABLES);
  const { rows: lines } = await client.query<{ name: string; line: string }>(LINES);
  const { rows: functions } = await client.query<{ text: string }>(FUNCTIONS);
  const texts = tables.map(({ name, columns, options, security }) => {
    const own = lines
      .filter((line) => line.name === name)
      .map(({ line }) => `--   ${line.replace(/\s*\n\s*/g, " ")}\n`);
    return `create table app.${name} (\n${columns}\n)${options};\n-- row-level security: ${security}\n${own.join("")}`;
  });
  return [HEAD, ...texts, ...functions.map(({ text }) => `${text.trim()};\n`)].join("\n");
}
