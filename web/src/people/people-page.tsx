// SPDX-License-Identifier: Apache-2.0
// The people of the organisation, and what may be done to each. Nobody is deleted: the ledger and the audit refer to them.

import { type FormEvent, useState, type ReactNode } from "react";
import type { User } from "../../../src/protocol/user-schema.ts";
import { useAction, useApi, type Reply } from "../app/api.ts";
import { useWho, useWhyNot } from "../app/session.tsx";
import { ActionButton, SubmitButton } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FailureOf, Loaded } from "../parts/failure.tsx";
import { faultsAt, SelectField, TextField } from "../parts/field.tsx";
import { type Column, Page, Table } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { Copy } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";
import { UserActions } from "./user-actions.tsx";

function columnsOf(
  users: readonly User[],
  ownId: string,
  onLink: (link: Reply<"loginLinkCreate">) => void,
): readonly Column<User>[] {
  return [
    {
      head: "User",
      cell: (user) => (
        <>
          <span className="cut">
            <Foreign text={user.name} />
          </span>{" "}
          {user.id === ownId && <span className="quiet">(you)</span>}
        </>
      ),
    },
    { head: "Role", cell: ({ role }) => role },
    {
      head: "State",
      cell: ({ disabledAt }) =>
        disabledAt === null ? <State tone="good" text="active" /> : <State tone="gone" text="disabled" />,
    },
    { head: "Password", cell: ({ hasPassword }) => (hasPassword ? "set" : <span className="quiet">none</span>) },
    { head: "Last seen", cell: ({ lastSeenAt }) => <Ago at={lastSeenAt} /> },
    { head: "", isWide: true, cell: (user) => <UserActions user={user} users={users} onLink={onLink} /> },
  ];
}

export function PeoplePage(): ReactNode {
  const who = useWho();
  const users = useApi("userList", {});
  const [isAdding, setAdding] = useState(false);
  const [link, setLink] = useState<Reply<"loginLinkCreate">>();
  const add = (
    <ActionButton kind="primary" whyNot={useWhyNot("userCreate")} onClick={() => setAdding(true)}>
      Add a user
    </ActionButton>
  );
  return (
    <Page title="People" actions={add}>
      <Loaded query={users}>
        {({ items }) => (
          <Table
            label="People"
            columns={columnsOf(items, who.userId, setLink)}
            rows={items}
            keyOf={({ id }) => id}
            isFaded={({ disabledAt }) => disabledAt !== null}
            empty={<p>There is nobody.</p>}
          />
        )}
      </Loaded>
      {isAdding && (
        <Dialog title="Add a user" onClose={() => setAdding(false)}>
          <UserForm onClose={() => setAdding(false)} />
        </Dialog>
      )}
      {link !== undefined && (
        <Dialog title={`A login link for ${link.userName}`} onClose={() => setLink(undefined)}>
          <LoginLink link={link} onClose={() => setLink(undefined)} />
        </Dialog>
      )}
    </Page>
  );
}

function UserForm({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<User["role"]>("member");
  const add = useAction("userCreate", onClose);
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (!add.isPending) add.mutate({ body: { name, role } });
  };
  return (
    <form onSubmit={send} aria-label="Add a user">
      <TextField label="Name" value={name} onChange={setName} isRequired faults={faultsAt(add.error, "/name")} />
      <SelectField
        label="Role"
        value={role}
        onChange={(value) => setRole(value === "admin" ? "admin" : "member")}
        choices={[
          ["member", "member: reads everything, submits and cancels jobs"],
          ["admin", "admin: everything"],
        ]}
      />
      <FailureOf error={add.error} />
      <p className="quiet">A login link, made afterwards, lets them in.</p>
      <div className="buttons">
        <SubmitButton isPending={add.isPending}>Add</SubmitButton>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </form>
  );
}

function LoginLink({ link, onClose }: { readonly link: Reply<"loginLinkCreate">; readonly onClose: () => void }) {
  const address = new URL(link.path, window.location.origin).href;
  return (
    <>
      <p>
        Shown only now. It signs {link.userName} in once and ends <Ago at={link.expiresAt} />:
      </p>
      <p className="secret">
        <code>{address}</code> <Copy text={address} what="the login link" />
      </p>
      <p className="quiet">Give it to nobody else: whoever opens it first is signed in as {link.userName}.</p>
      <div className="buttons">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </>
  );
}
