// SPDX-License-Identifier: Apache-2.0
// Everything that can be presented: tokens, browsers, nodes; and making and revoking tokens.

import { Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import type { Credential } from "../../../src/protocol/access-schema.ts";
import { useAction, useApi } from "../app/api.ts";
import { useWho, useWhyNot } from "../app/session.tsx";
import { ActionButton } from "../parts/button.tsx";
import { Confirm, Dialog } from "../parts/dialog.tsx";
import { Loaded } from "../parts/failure.tsx";
import { type Column, Page, Table } from "../parts/page.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";
import { TokenForm } from "./token-form.tsx";

const columns: readonly Column<Credential>[] = [
  { head: "Kind", cell: ({ kind }) => kind },
  { head: "Name", cell: ({ name }) => <Foreign text={name} /> },
  { head: "Whose", cell: (credential) => <Whose credential={credential} /> },
  { head: "May", isWide: true, cell: ({ scopes }) => <span className="quiet">{scopes.join(", ")}</span> },
  { head: "Last used", cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
  { head: "Expires", cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
  { head: "", cell: (credential) => <RevokeButton credential={credential} /> },
];

function Whose({ credential }: { readonly credential: Credential }) {
  const { nodeId, nodeName, userName } = credential;
  if (nodeId === null) return <Foreign text={userName ?? "nobody"} />;
  return (
    <Link to="/nodes/$nodeId" params={{ nodeId }}>
      <Foreign text={nodeName ?? nodeId} />
    </Link>
  );
}

export function CredentialsPage(): ReactNode {
  const credentials = useApi("credentialList", {});
  const [isMaking, setMaking] = useState(false);
  const make = (
    <ActionButton kind="primary" whyNot={useWhyNot("tokenCreate")} onClick={() => setMaking(true)}>
      Make a token
    </ActionButton>
  );
  return (
    <Page title="Credentials" actions={make}>
      <Loaded query={credentials}>
        {({ items }) => (
          <Table
            label="Credentials"
            columns={columns}
            rows={items}
            keyOf={({ id }) => id}
            isFaded={({ revokedAt }) => revokedAt !== null}
            empty={<p>There is none.</p>}
          />
        )}
      </Loaded>
      {isMaking && (
        <Dialog title="Make a token" onClose={() => setMaking(false)}>
          <TokenForm onClose={() => setMaking(false)} />
        </Dialog>
      )}
    </Page>
  );
}

function RevokeButton({ credential }: { readonly credential: Credential }) {
  const who = useWho();
  const [isAsking, setAsking] = useState(false);
  const revoke = useAction("tokenRevoke", () => setAsking(false));
  const whyNot = useWhyNot("tokenRevoke");
  if (credential.revokedAt !== null) {
    return (
      <span className="quiet">
        revoked <Ago at={credential.revokedAt} />
      </span>
    );
  }
  const isBrowser = credential.kind === "browser";
  const reason = credential.kind === "node" ? "the credential of a node ends when the node is retired" : whyNot;
  const verb = isBrowser ? "Sign out" : "Revoke";
  return (
    <>
      <ActionButton kind="danger" whyNot={reason} onClick={() => setAsking(true)} label={`${verb}: ${credential.name}`}>
        {verb}
      </ActionButton>
      {credential.id === who.credentialId && <span className="quiet"> this browser</span>}
      {isAsking && (
        <Confirm
          title={`${verb}: ${credential.name}?`}
          verb={verb}
          isPending={revoke.isPending}
          error={revoke.error}
          onConfirm={() => revoke.mutate({ params: { credentialId: credential.id } })}
          onClose={() => setAsking(false)}
        >
          <p>
            {isBrowser
              ? "That browser is signed out with its next request."
              : "This cannot be undone. Whatever uses it is refused from its next request on."}
          </p>
        </Confirm>
      )}
    </>
  );
}
