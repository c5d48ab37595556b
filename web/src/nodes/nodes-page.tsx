// SPDX-License-Identifier: Apache-2.0
// All nodes, the dialog that lets a machine join, and the machines that are about to.

import { useState, type ReactNode } from "react";
import { useApi } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { ActionButton } from "../parts/button.tsx";
import { CommandLine } from "../parts/copy.tsx";
import { Loaded } from "../parts/failure.tsx";
import { Page, Table } from "../parts/page.tsx";
import { AddMachine } from "./add-machine.tsx";
import { nodeColumns } from "./node-columns.tsx";
import { PairingsUnderWay } from "./pairings-under-way.tsx";

export function NodesPage(): ReactNode {
  const nodes = useApi("nodeList", {});
  const [isAdding, setAdding] = useState(false);
  return (
    <Page
      title="Nodes"
      actions={
        <ActionButton kind="primary" whyNot={useWhyNot("pairingCreate")} onClick={() => setAdding(true)}>
          Add a machine
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
      <PairingsUnderWay nodes={nodes.data?.items ?? []} />
      {isAdding && <AddMachine onClose={() => setAdding(false)} />}
    </Page>
  );
}
