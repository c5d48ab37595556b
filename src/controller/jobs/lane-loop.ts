// SPDX-License-Identifier: Apache-2.0
// Decides for each lane with waiting jobs whether any node can run them, and says why not. One row blocks or frees a
// hundred thousand jobs; a blocked lane frees itself when a node that fits comes online (promise P6).

import { blockedReason } from "../../protocol/placement-verdict.ts";
import type { Requirements } from "../../protocol/placement.ts";
import type { LaneId, OrganisationId } from "../../std/ids.ts";
import type { Context } from "../context.ts";
import { listCandidates } from "../nodes/candidate-store.ts";
import { expireReservations } from "./reservation-store.ts";

type LaneRow = {
  readonly organisation_id: OrganisationId;
  readonly id: LaneId;
  readonly requirement: Requirements;
  readonly blocked: string | null;
};

export async function evaluateLanes(context: Context): Promise<void> {
  await context.db.service(async (tx) => {
    await expireReservations(tx, context.config.heartbeatMs);
    const { rows: lanes } = await tx.query<LaneRow>(
      `select l.organisation_id, l.id, l.requirement, l.blocked from app.lane l
        where l.blocked is not null or exists (select 1 from app.job j where j.lane_id = l.id and j.state = 'queued')`,
      [],
    );
    if (lanes.length === 0) return;
    const isServing = lanes.some(({ requirement: { scene, servedModel } }) => (scene ?? servedModel) !== undefined);
    const candidates = await listCandidates(tx, context.config.heartbeatMs, isServing);
    for (const lane of lanes) {
      const blocked = blockedReason(lane.requirement, candidates.get(lane.organisation_id) ?? []) ?? null;
      if (blocked === lane.blocked) continue;
      await tx.query("update app.lane set blocked = $3 where organisation_id = $1 and id = $2", [
        lane.organisation_id,
        lane.id,
        blocked,
      ]);
    }
  });
}
