// SPDX-License-Identifier: Apache-2.0
// Returns the leases of a node that lost the right to them: it was retired, or its agent began anew without them.

import type { Tx } from "../../db/pool.ts";
import type { Context } from "../context.ts";
import { LOST_COLUMNS, type LostRow, moveLost } from "./lost.ts";
import { moveJobs } from "./move-store.ts";

export type Returned = {
  readonly nodeId: string;
  readonly actor: string;
  readonly why: string;
  /** Only leases that are not of this session; all when absent. */
  readonly exceptSession?: string;
};

export async function returnLeases(tx: Tx, context: Context, returned: Returned): Promise<void> {
  const { rows } = await tx.query<LostRow>(
    `select ${LOST_COLUMNS} from app.job
      where node_id = $1 and lease_until is not null and session_id is distinct from $2 for update`,
    [returned.nodeId, returned.exceptSession ?? null],
  );
  const moves = rows.map((row) => moveLost(context, row, { eventKind: "returned", why: returned.why }));
  await moveJobs(tx, moves, returned.actor);
  for (const row of rows) context.wakeups.wake(`job:${row.id}`);
}
