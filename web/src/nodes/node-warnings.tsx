// SPDX-License-Identifier: Apache-2.0
// What is wrong with a node, above everything else.

import { CLOCK_OFFSET_WARN_MS, RIVAL_SHOWN_MS } from "../../../src/protocol/node.ts";
import type { Node } from "../../../src/protocol/node-schema.ts";
import { Foreign } from "../parts/foreign.tsx";
import { Ago, useIsRecent } from "../parts/time.tsx";

export function NodeWarnings({ node }: { readonly node: Node }) {
  const isRivalRecent = useIsRecent(node.rivalAt, RIVAL_SHOWN_MS);
  if (node.status === "retired") return null;
  const offsetMs = node.clockOffsetMs ?? 0;
  return (
    <>
      {isRivalRecent && (
        <p className="note bad" role="alert">
          ■ Its credential is used by two agents, last <Ago at={node.rivalAt} />: a copied disk or a copied credential.
          Stop one of them, or pair the copy as a node of its own.
        </p>
      )}
      {node.boundary !== null && node.boundary.state !== "trusted" && (
        <p className="note bad" role="alert">
          ■ It refuses every job: <Foreign text={node.boundary.why ?? node.boundary.state} />. On the node,{" "}
          <code>npx holdfast boundary show</code> says what to do.
        </p>
      )}
      {!node.online && (
        <p className="note warn">
          ▲ Offline: its last heartbeat was <Ago at={node.lastHeartbeatAt} />. Look whether the machine runs, and there
          at: <code>npx holdfast agent</code>
        </p>
      )}
      {Math.abs(offsetMs) > CLOCK_OFFSET_WARN_MS && (
        <p className="note warn">
          ▲ Its clock is {Math.abs(offsetMs / 1000).toFixed(1)} s {offsetMs > 0 ? "ahead" : "behind"}: set it.
        </p>
      )}
      {node.status === "draining" && <p className="note">Draining: it finishes what it holds and claims nothing.</p>}
      {node.rotation !== null && (
        <p className="note">
          {node.rotation === "requested"
            ? "A new credential was asked for: the agent is told with its next heartbeat."
            : "A new credential was offered: the old one ends when the new one is used."}
        </p>
      )}
    </>
  );
}
