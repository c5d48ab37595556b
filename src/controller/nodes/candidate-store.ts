// SPDX-License-Identifier: Apache-2.0
// Nodes as placement judges them: what they have, what of it is free, what they serve. Read from what they told last.

import { ONLINE_INTERVALS, type NodeStatus } from "../../protocol/node.ts";
import type { NodeFacts } from "../../protocol/node-schema.ts";
import type { BoundaryReport } from "../../protocol/agent-schema.ts";
import type { MachineFacts } from "../../protocol/placement-pools.ts";
import { type Candidate, servedOf } from "../../protocol/placement-verdict.ts";
import type { SceneReport } from "../../protocol/scene-schema.ts";
import type { Tx } from "../../db/pool.ts";
import type { NodeId, OrganisationId } from "../../std/ids.ts";

/** Whether a node is online, on the database's clock; $1 is the interval of heartbeats. */
export const ONLINE = `(n.status <> 'retired' and n.session_id is not null and h.at > now() - $1 * ${ONLINE_INTERVALS} * interval '1 millisecond')`;

type CandidateRow = {
  readonly organisation_id: OrganisationId;
  readonly id: NodeId;
  readonly name: string;
  readonly status: NodeStatus;
  readonly is_online: boolean;
  readonly heartbeat_at: Date | null;
  readonly boundary_state: BoundaryReport["state"] | null;
  readonly boundary_why: string | null;
  readonly arch: string | null;
  readonly memory_total_bytes: string | null;
  readonly memory_available_bytes: string | null;
  readonly devices: NodeFacts["devices"] | null;
  readonly devices_available: readonly (number | null)[] | null;
  readonly floor_bytes: string | null;
  readonly scenes: SceneReport | null;
};

const SELECT = `
  select n.organisation_id, n.id, n.name, n.status, coalesce(${ONLINE}, false) as is_online, h.at as heartbeat_at,
         n.boundary_state, n.boundary_why, f.facts ->> 'arch' as arch, f.facts ->> 'memoryTotalBytes' as memory_total_bytes,
         h.memory_available_bytes, f.facts -> 'devices' as devices, h.devices_available,
         h.scenes ->> 'floorBytes' as floor_bytes, case when $2 then h.scenes end as scenes
    from app.node n
    left join app.node_heartbeat h on h.organisation_id = n.organisation_id and h.node_id = n.id
    left join app.node_facts f on f.organisation_id = n.organisation_id and f.node_id = n.id
   where n.status <> 'retired'`;

/** Of every organisation that this transaction may see. withScenes: also what they serve, which is a larger read. */
export async function listCandidates(
  tx: Tx,
  heartbeatMs: number,
  withScenes = true,
): Promise<ReadonlyMap<OrganisationId, readonly Candidate[]>> {
  const { rows } = await tx.query<CandidateRow>(`${SELECT} order by n.name, n.id`, [heartbeatMs, withScenes]);
  const groups = Map.groupBy(rows, (row) => row.organisation_id);
  return new Map([...groups].map(([id, group]) => [id, group.map(fromRow)]));
}

/** One node; undefined when it is not there or retired. */
export async function findCandidate(tx: Tx, heartbeatMs: number, id: string): Promise<Candidate | undefined> {
  const row = await tx.maybeOne<CandidateRow>(`${SELECT} and n.id = $3`, [heartbeatMs, true, id]);
  return row === undefined ? undefined : fromRow(row);
}

/** Other nodes of the caller's organisation that asked for work within the time. */
export async function listPolling(
  tx: Tx,
  heartbeatMs: number,
  asked: { readonly exceptId: string; readonly withinMs: number },
): Promise<readonly Candidate[]> {
  const { rows } = await tx.query<CandidateRow>(
    `${SELECT} and n.status = 'active' and n.id <> $3 and h.polled_at > now() - $4 * interval '1 millisecond'`,
    [heartbeatMs, true, asked.exceptId, asked.withinMs],
  );
  return rows.map(fromRow);
}

function fromRow(row: CandidateRow): Candidate {
  return {
    nodeId: row.id,
    name: row.name,
    status: row.status,
    isOnline: row.is_online,
    lastHeartbeatAt: row.heartbeat_at?.toISOString() ?? null,
    facts: factsFromRow(row),
    served: servedOf(row.scenes),
    refuses:
      row.boundary_state === null || row.boundary_state === "trusted" ? null : (row.boundary_why ?? row.boundary_state),
  };
}

function factsFromRow(row: CandidateRow): MachineFacts | null {
  if (row.arch === null || row.memory_total_bytes === null) return null;
  return {
    arch: row.arch,
    memoryTotalBytes: Number(row.memory_total_bytes),
    memoryAvailableBytes: row.memory_available_bytes === null ? null : Number(row.memory_available_bytes),
    floorBytes: row.floor_bytes === null ? null : Number(row.floor_bytes),
    devices: withAvailable(row.devices ?? [], row.devices_available),
  };
}

/** Device by device what is free of it, which is kept apart: it changes with every heartbeat. */
export function withAvailable(
  devices: NodeFacts["devices"],
  available: readonly (number | null)[] | null,
): NodeFacts["devices"] {
  return devices.map((device, index) => ({ ...device, memoryAvailableBytes: available?.[index] ?? null }));
}
