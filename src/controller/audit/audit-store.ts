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
  readonly action: string;
  readonly subject: string;
  readonly data: Record<string, unknown>;
};

export async function listAudit(tx: Tx, query: { readonly limit?: number; readonly cursor?: string }) {
  const limit = query.limit ?? PAGE_DEFAULT;
  const { rows } = await tx.query<AuditRow>(
    `select id, at, actor, action, subject, data from app.audit
      where ($1::text is null or id < $1) order by id desc limit $2`,
    [query.cursor ?? null, limit],
  );
  const items: AuditEntry[] = rows.map((row) => ({ ...row, at: row.at.toISOString() }));
  return { items, nextCursor: items.length === limit ? (items.at(-1)?.id ?? null) : null };
}
