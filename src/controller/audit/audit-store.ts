// SPDX-License-Identifier: Apache-2.0
// The audit: who changed authority, written in the transaction that changes it. Never updated, never deleted, by grant.

import type { AuditEntry } from "../../protocol/access-schema.ts";
import { PAGE_DEFAULT } from "../../protocol/limits.ts";
import type { Tx } from "../../db/pool.ts";
import type { AuditId, OrganisationId } from "../../std/ids.ts";

export type NewAudit = {
  readonly organisationId: OrganisationId;
  readonly id: AuditId;
  readonly actor: string;
  /** noun.verb, such as node.retire */
  readonly action: string;
  readonly subject: string;
  readonly data?: { readonly [key: string]: unknown };
};

export async function insertAudit(tx: Tx, entry: NewAudit): Promise<void> {
  await tx.query(
    "insert into app.audit (organisation_id, id, actor, action, subject, data) values ($1, $2, $3, $4, $5, $6)",
    [entry.organisationId, entry.id, entry.actor, entry.action, entry.subject, JSON.stringify(entry.data ?? {})],
  );
}

type AuditRow = {
  readonly id: AuditId;
  readonly at: Date;
  readonly actor: string;
  readonly actor_name: string | null;
  readonly action: string;
  readonly subject: string;
  readonly subject_name: string | null;
  readonly data: Record<string, unknown>;
};

/** What an id is called now, of the kinds that have names. */
const nameOf = (column: string): string =>
  `coalesce((select name from app."user" where id = ${column}), (select name from app.node where id = ${column}),
            (select name from app.credential where id = ${column}), (select name from app.model where id = ${column}),
            (select name from app.project where id = ${column}), (select name from app.pairing_code where id = ${column}))`;

export type AuditQuery = {
  readonly limit?: number;
  readonly cursor?: string;
  /** An action, or its first part: node is every node.… */
  readonly action?: string;
  readonly subject?: string;
};

export async function listAudit(tx: Tx, query: AuditQuery) {
  const limit = query.limit ?? PAGE_DEFAULT;
  const { rows } = await tx.query<AuditRow>(
    `select id, at, actor, ${nameOf("a.actor")} as actor_name, action, subject, ${nameOf("a.subject")} as subject_name, data
       from app.audit a
      where ($1::text is null or id < $1) and ($3::text is null or action = $3 or action like $3 || '.%')
        and ($4::text is null or subject = $4)
      order by id desc limit $2`,
    [query.cursor ?? null, limit, query.action ?? null, query.subject ?? null],
  );
  const items: AuditEntry[] = rows.map((row) => ({
    id: row.id,
    at: row.at.toISOString(),
    actor: row.actor,
    actorName: row.actor_name,
    action: row.action,
    subject: row.subject,
    subjectName: row.subject_name,
    data: row.data,
  }));
  return { items, nextCursor: items.length === limit ? (items.at(-1)?.id ?? null) : null };
}
