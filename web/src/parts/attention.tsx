// SPDX-License-Identifier: Apache-2.0
// What the controller says that a person should look at: worst first, each with what to do.

import { Link } from "@tanstack/react-router";
import type { Attention } from "../../../src/protocol/access-schema.ts";
import { Foreign } from "./foreign.tsx";

export type AttentionListProps = {
  readonly items: readonly Attention[];
  /** On the page of the node itself. */
  readonly isOfNode?: boolean;
};

export function AttentionList({ items, isOfNode = false }: AttentionListProps) {
  return (
    <ul className="attention" aria-label="What needs attention">
      {items.map((item) => (
        <li key={`${item.level} ${item.text}`} className={item.level}>
          <span className="level">
            <span aria-hidden="true">{item.level === "error" ? "■" : "▲"}</span> {item.level}
          </span>
          <div>
            <p>
              <Foreign text={item.text} />
            </p>
            <p className="quiet">
              <Foreign text={item.advice} />
            </p>
          </div>
          <span className="links">
            {item.nodeId !== null && !isOfNode && (
              <Link to="/nodes/$nodeId" params={{ nodeId: item.nodeId }}>
                Show the node
              </Link>
            )}
            {item.jobState !== null && (
              <Link to="/jobs" search={{ state: item.jobState }}>
                Show {item.jobState} jobs
              </Link>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}
