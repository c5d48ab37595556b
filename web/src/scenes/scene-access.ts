// SPDX-License-Identifier: Apache-2.0
// Why a person cannot ask a node for a scene now, in one sentence.

import { sceneCan } from "../../../src/protocol/node.ts";
import type { Node } from "../../../src/protocol/node-schema.ts";
import { useWhyNot } from "../app/session.tsx";

/** Undefined: it can be asked. */
export function useWhyNotScene(node: Node): string | undefined {
  const whyNot = useWhyNot("nodeScene");
  const { statuses, otherwise } = sceneCan.activate;
  if (!statuses.some((status) => status === node.status)) return otherwise;
  if (whyNot !== undefined) return whyNot;
  if (!node.online) return "it is not online: it can be asked when it is back";
  const busy = node.scenes?.busy ?? null;
  return busy === null ? undefined : `${busy} is not over yet`;
}
