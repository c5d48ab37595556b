// SPDX-License-Identifier: Apache-2.0
// What is wrong with a node, above everything else: what the controller and doctor find, and how a node mends that refuses jobs.

import type { Node } from "../../../src/protocol/node-schema.ts";
import { boundaryMends } from "../../../src/protocol/node.ts";
import { useApi } from "../app/api.ts";
import { AttentionList } from "../parts/attention.tsx";
import { CommandLine } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Section } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";

export function NodeWarnings({ node }: { readonly node: Node }) {
  const overview = useApi("overview", {});
  if (node.status === "retired") return null;
  const items = (overview.data?.attention ?? []).filter(({ nodeId }) => nodeId === node.id);
  return (
    <>
      {items.length > 0 && (
        <div role="alert">
          <AttentionList items={items} isOfNode />
        </div>
      )}
      {node.status === "draining" && <p className="note">Draining: it finishes what it holds and claims nothing.</p>}
    </>
  );
}

/** Nothing while it is trusted. */
export function BoundarySection({ boundary }: Pick<Node, "boundary">) {
  if (boundary === null || boundary.state === "trusted") return null;
  const { text, commands } = boundaryMends[boundary.state];
  return (
    <Section title="Boundary">
      <div className="note bad">
        <p>
          <State tone="bad" text={boundary.state} />
          {boundary.why !== null && (
            <>
              : <Foreign text={boundary.why} />
            </>
          )}
        </p>
        <p>{text} On the node:</p>
        {commands.map((command) => (
          <CommandLine key={command} text={command} />
        ))}
      </div>
    </Section>
  );
}
