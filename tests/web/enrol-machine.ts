// SPDX-License-Identifier: Apache-2.0
// A machine that is enrolled by hand over the real routes: it reports phases as the script does, and pairs as the agent does.

import type { TestContext } from "node:test";
import { createClient } from "../../src/client/client.ts";
import type { PhaseReport } from "../../src/protocol/enrol-schema.ts";
import type { NodeFacts } from "../../src/protocol/node-schema.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { newNodeKey, NodeDouble, pairWith } from "../kit/node-double.ts";

export function machineWith(baseUrl: string, pairingCode: string) {
  const client = createClient({ baseUrl });
  return {
    report: (phase: PhaseReport["phase"], outcome: PhaseReport["outcome"], detail = "") =>
      client.call("pairingReport", { body: { report: { phase, outcome, detail } }, pairingCode }),
    pair: async (facts: Partial<NodeFacts> = {}): Promise<NodeDouble> => {
      const key = newNodeKey();
      const { nodeId } = await pairWith(baseUrl, pairingCode, key);
      return new NodeDouble({ baseUrl, nodeId, credential: key.credential, facts });
    },
  };
}

const HEARTBEAT_MS = 1_000;

/** Online for as long as its credential is good, however long the test takes. */
export function keepOnline(t: TestContext, node: NodeDouble): void {
  const timer = setInterval(() => void node.heartbeat().catch(() => undefined), HEARTBEAT_MS);
  cleanupOf(t).defer(() => clearInterval(timer));
}
