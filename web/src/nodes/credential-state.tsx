// SPDX-License-Identifier: Apache-2.0
// How the replacing of a node's credential stands: asked for, offered, in use. Never what it is.

import type { Node } from "../../../src/protocol/node-schema.ts";
import { useApi } from "../app/api.ts";
import { State } from "../parts/state.tsx";
import { Ago } from "../parts/time.tsx";

export function CredentialState({ node: { id, rotation } }: { readonly node: Node }) {
  const credentials = useApi("credentialList", {});
  if (rotation === "requested")
    return <State tone="busy" text="A new credential was asked for: the agent is told with its next heartbeat" />;
  if (rotation === "offered")
    return <State tone="busy" text="A new credential was offered: the old one ends when it is used" />;
  // The newest first.
  const current = credentials.data?.items.find(({ nodeId, revokedAt }) => nodeId === id && revokedAt === null);
  if (current === undefined) return <span className="quiet">unknown</span>;
  return (
    <>
      <State tone="good" text="in use" />, made <Ago at={current.createdAt} />
    </>
  );
}
