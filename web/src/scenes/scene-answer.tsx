// SPDX-License-Identifier: Apache-2.0
// What a person asked a node for last, and the node's own word on it. It stays until somebody asks again.

import type { ReactNode } from "react";
import type { Node } from "../../../src/protocol/node-schema.ts";
import type { SceneReport } from "../../../src/protocol/scene-schema.ts";
import { Foreign } from "../parts/foreign.tsx";
import { State } from "../parts/state.tsx";
import { Ago } from "../parts/time.tsx";
import type { ReportingNode } from "./scene-dialogs.tsx";

type Wish = NonNullable<Node["wish"]>;
type WishState = NonNullable<SceneReport["wish"]>;

export function SceneAnswer({ node }: { readonly node: ReportingNode }) {
  const { wish } = node;
  return (
    <div className="answer">
      {wish !== null && (
        <p className="quiet">
          Asked for {wish.scene === null ? "no scene" : <strong>{wish.scene}</strong>} <Ago at={wish.at} />
        </p>
      )}
      {/* Without the time: it would be read out with every second. */}
      <div role="status">{wish !== null && <Answer node={node} wish={wish} />}</div>
    </div>
  );
}

function Answer({ node, wish }: { readonly node: ReportingNode; readonly wish: Wish }): ReactNode {
  const told = node.scenes.wish;
  if (told?.number === wish.number) return <Told told={told} />;
  if (!node.online) return <State tone="wait" text="it is not online: it will act when it is back" />;
  // An agent that began anew no longer knows what its last life answered.
  const isOfLastLife = Date.parse(node.session?.startedAt ?? "") > Date.parse(wish.at);
  return told === null && isOfLastLife ? null : <State tone="wait" text="it is told with its next heartbeat" />;
}

function Told({ told: { state, text } }: { readonly told: WishState }) {
  switch (state) {
    case "under-way":
      return <State tone="busy" text="under way" />;
    case "done":
      return <State tone="good" text={`done: ${text}`} />;
    case "refused":
      return (
        <p className="refusal">
          <State tone="bad" text="refused:" /> <Foreign text={text} />
        </p>
      );
    default:
      return state satisfies never;
  }
}
