// SPDX-License-Identifier: Apache-2.0
// Drain, activate, rotate, take over, retire: each disabled with its reason where the node's status or the user's scopes say so.

import { useState } from "react";
import { machineCan, type NodeAction, nodeCan } from "../../../src/protocol/node.ts";
import type { Node } from "../../../src/protocol/node-schema.ts";
import { useAction } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { ActionButton } from "../parts/button.tsx";
import { Confirm } from "../parts/dialog.tsx";
import { FailureOf } from "../parts/failure.tsx";
import { AddMachine } from "./add-machine.tsx";

function whyNotNode(action: NodeAction, node: Node): string | undefined {
  const { statuses, otherwise } = nodeCan[action];
  return statuses.some((status) => status === node.status) ? undefined : otherwise;
}

export function NodeActions({ node }: { readonly node: Node }) {
  const [isRetiring, setRetiring] = useState(false);
  const input = { params: { nodeId: node.id } };
  const drain = useAction("nodeDrain");
  const activate = useAction("nodeActivate");
  const rotate = useAction("nodeRotate");
  const retire = useAction("nodeRetire", () => setRetiring(false));
  const whyNot = {
    drain: useWhyNot("nodeDrain"),
    activate: useWhyNot("nodeActivate"),
    rotate: useWhyNot("nodeRotate"),
    retire: useWhyNot("nodeRetire"),
  };
  const reason = (action: NodeAction): string | undefined => whyNotNode(action, node) ?? whyNot[action];
  return (
    <>
      <ActionButton whyNot={reason("drain")} isPending={drain.isPending} onClick={() => drain.mutate(input)}>
        Drain
      </ActionButton>
      <ActionButton whyNot={reason("activate")} isPending={activate.isPending} onClick={() => activate.mutate(input)}>
        Activate
      </ActionButton>
      <ActionButton whyNot={reason("rotate")} isPending={rotate.isPending} onClick={() => rotate.mutate(input)}>
        Rotate credential
      </ActionButton>
      <TakeOver node={node} />
      <ActionButton kind="danger" whyNot={reason("retire")} onClick={() => setRetiring(true)}>
        Retire
      </ActionButton>
      <FailureOf error={drain.error ?? activate.error ?? rotate.error} />
      {isRetiring && (
        <Confirm
          title={`Retire ${node.name}?`}
          verb={`Retire ${node.name}`}
          isPending={retire.isPending}
          error={retire.error}
          onConfirm={() => retire.mutate(input)}
          onClose={() => setRetiring(false)}
        >
          <p>
            This cannot be undone. Its credential is revoked for good; the {node.running}{" "}
            {node.running === 1 ? "job" : "jobs"} that it holds go back to the queue. The machine can only come back by
            being paired again.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** Puts another machine, or this one set up anew, in the place of the one behind the node. */
function TakeOver({ node }: { readonly node: Node }) {
  const [isAsking, setAsking] = useState(false);
  const whyNot = useWhyNot("pairingCreate");
  const { statuses, otherwise } = machineCan.takeOver;
  const can = statuses.some((status) => status === node.status);
  return (
    <>
      <ActionButton whyNot={can ? whyNot : otherwise} onClick={() => setAsking(true)}>
        Take over…
      </ActionButton>
      {isAsking && <AddMachine takeOver={node} onClose={() => setAsking(false)} />}
    </>
  );
}
