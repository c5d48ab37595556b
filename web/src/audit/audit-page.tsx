// SPDX-License-Identifier: Apache-2.0
// Everything that changed authority, newest first; the filters stand in the address.

import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState, type ReactNode } from "react";
import type { AuditEntry } from "../../../src/protocol/access-schema.ts";
import { useSearchOf } from "../app/address.ts";
import { api, type Reply } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { ActionButton } from "../parts/button.tsx";
import { Loaded } from "../parts/failure.tsx";
import { TextField } from "../parts/field.tsx";
import { auditFiltersOf } from "./audit-filters.ts";
import { type Column, Page, Table } from "../parts/page.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";

const columns: readonly Column<AuditEntry>[] = [
  { head: "When", cell: ({ at }) => <Ago at={at} /> },
  { head: "Action", cell: ({ action }) => <code>{action}</code> },
  { head: "Who", cell: ({ actor, actorName }) => <Named id={actor} name={actorName} /> },
  { head: "On", cell: ({ subject, subjectName }) => <Named id={subject} name={subjectName} /> },
  { head: "Details", isWide: true, cell: ({ data }) => <Foreign text={detailsOf(data)} isCode /> },
];

function Named({ id, name }: { readonly id: string; readonly name: string | null }) {
  return (
    <span title={id} className="cut">
      <Foreign text={name ?? id} isCode={name === null} />
    </span>
  );
}

function detailsOf(data: AuditEntry["data"]): string {
  return Object.entries(data)
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("  ");
}

export function AuditPage(): ReactNode {
  const whyNot = useWhyNot("auditList");
  return (
    <Page title="Audit">
      {whyNot === undefined ? <Entries /> : <p className="note">The audit is not shown: {whyNot}.</p>}
    </Page>
  );
}

function Entries() {
  const { action, subject } = useSearchOf(auditFiltersOf);
  const entries = useInfiniteQuery({
    queryKey: ["auditList", action, subject],
    queryFn: ({ pageParam, signal }): Promise<Reply<"auditList">> =>
      api.call(
        "auditList",
        {
          query: {
            ...(action === undefined ? {} : { action }),
            ...(subject === undefined ? {} : { subject }),
            ...(pageParam === null ? {} : { cursor: pageParam }),
          },
        },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.nextCursor,
    placeholderData: (before) => before,
  });
  return (
    <>
      <Filters key={`${action ?? ""} ${subject ?? ""}`} action={action ?? ""} subject={subject ?? ""} />
      <Loaded query={entries}>
        {({ pages }) => (
          <Table
            label="Audit"
            columns={columns}
            rows={pages.flatMap((page) => page.items)}
            keyOf={({ id }) => id}
            empty={<p>Nothing matches.</p>}
          />
        )}
      </Loaded>
      {entries.hasNextPage && (
        <ActionButton onClick={() => void entries.fetchNextPage()} isPending={entries.isFetchingNextPage}>
          Load more
        </ActionButton>
      )}
    </>
  );
}

function Filters(shown: { readonly action: string; readonly subject: string }) {
  const navigate = useNavigate();
  const [action, setAction] = useState(shown.action);
  const [subject, setSubject] = useState(shown.subject);
  const chosen = (value: string): string | undefined => (value.trim() === "" ? undefined : value.trim());
  const send = (event: FormEvent): void => {
    event.preventDefault();
    void navigate({ to: "/audit", search: { action: chosen(action), subject: chosen(subject) } });
  };
  return (
    <form className="filters" role="search" onSubmit={send}>
      <TextField
        label="Action"
        type="search"
        placeholder="node.retire, or node  ( / )"
        value={action}
        onChange={setAction}
      />
      <TextField label="On" placeholder="id of a node, user, credential" value={subject} onChange={setSubject} />
      <button type="submit">Filter</button>
    </form>
  );
}
