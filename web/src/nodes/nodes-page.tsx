// SPDX-License-Identifier: Apache-2.0
// All nodes, and the form that lets a machine join.

import { type FormEvent, useState, type ReactNode } from "react";
import { useAction, useApi, type Reply } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { ActionButton, SubmitButton } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FailureOf, Loaded } from "../parts/failure.tsx";
import { faultsAt, TextField } from "../parts/field.tsx";
import { Page, Table } from "../parts/page.tsx";
import { CommandLine, Copy } from "../parts/copy.tsx";
import { Ago } from "../parts/time.tsx";
import { nodeColumns } from "./node-columns.tsx";

export function NodesPage(): ReactNode {
  const nodes = useApi("nodeList", {});
  const [isPairing, setPairing] = useState(false);
  return (
    <Page
      title="Nodes"
      actions={
        <ActionButton kind="primary" whyNot={useWhyNot("pairingCreate")} onClick={() => setPairing(true)}>
          Pair a machine
        </ActionButton>
      }
    >
      <Loaded query={nodes}>
        {({ items }) => (
          <Table
            label="Nodes"
            columns={nodeColumns}
            rows={items}
            keyOf={(node) => node.id}
            isFaded={(node) => node.status === "retired"}
            empty={
              <>
                <p>No node yet. A machine joins with a code:</p>
                <CommandLine text="npx holdfast node pair NAME" />
              </>
            }
          />
        )}
      </Loaded>
      {isPairing && (
        <Dialog title="Pair a machine" onClose={() => setPairing(false)}>
          <Pairing onClose={() => setPairing(false)} />
        </Dialog>
      )}
    </Page>
  );
}

function Pairing({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const pair = useAction("pairingCreate");
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (!pair.isPending) pair.mutate({ body: { name } });
  };
  if (pair.data !== undefined) return <PairingCode made={pair.data} onClose={onClose} />;
  return (
    <form onSubmit={send} aria-label="Pair a machine">
      <TextField
        label="Name of the node"
        value={name}
        onChange={setName}
        isRequired
        hint="letters, digits, dots, dashes and underscores"
        faults={faultsAt(pair.error, "/name")}
      />
      <FailureOf error={pair.error} />
      <div className="buttons">
        <SubmitButton isPending={pair.isPending}>Make a code</SubmitButton>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </form>
  );
}

const isLocal = (host: string): boolean => /^(127\.|localhost$|\[::1\])/.test(host);

function PairingCode({ made, onClose }: { readonly made: Reply<"pairingCreate">; readonly onClose: () => void }) {
  return (
    <>
      <p>
        The code for <strong>{made.name}</strong>, shown only now; it is good for one machine and ends{" "}
        <Ago at={made.expiresAt} />:
      </p>
      <p className="secret">
        <code>{made.code}</code> <Copy text={made.code} what="the code" />
      </p>
      <p>On that machine, in a checkout of Holdfast:</p>
      <CommandLine text="npm ci" />
      <CommandLine text="read -rs HOLDFAST_PAIRING_CODE && export HOLDFAST_PAIRING_CODE" />
      <p className="quiet">Paste the code there and press Enter; it is not shown.</p>
      <CommandLine text={`npx holdfast agent --join ${window.location.origin}`} />
      {isLocal(window.location.hostname) && (
        <p className="note warn">
          ▲ This address is of this machine only: start the controller with <code>--listen HOST:PORT</code> for others
          to reach it.
        </p>
      )}
      <div className="buttons">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </>
  );
}
