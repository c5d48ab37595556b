// SPDX-License-Identifier: Apache-2.0
// Nodes in the database. Online is computed on the database's clock from the last heartbeat, never stored.

import { nodeCan, type NodeAction, type NodeStatus } from "../../protocol/node.ts";
import type { Node, NodeFacts } from "../../protocol/node-schema.ts";
import type { BoundaryEvidence, BoundaryReport } from "../../protocol/agent-schema.ts";
import type { SceneReport } from "../../protocol/scene-schema.ts";
import type { Tx } from "../../db/pool.ts";
import type { NodeId, OrganisationId, SessionId } from "../../std/ids.ts";
import { ONLINE, withAvailable } from "./candidate-store.ts";

type NodeRow = {
  readonly id: NodeId;
  readonly name: string;
  readonly status: NodeStatus;
  readonly created_at: Date;
  readonly heartbeat_at: Date | null;
  readonly is_online: boolean;
  readonly clock_offset_ms: string | null;
  readonly memory_available_bytes: string | null;
  readonly devices_available: readonly (number | null)[] | null;
  readonly facts: NodeFacts | null;
  readonly running: string;
  readonly boundary_state: BoundaryReport["state"] | null;
  readonly boundary_why: string | null;
  readonly boundary_evidence: BoundaryEvidence | null;
  readonly session_id: SessionId | null;
  readonly session_at: Date | null;
  readonly rival_at: Date | null;
  readonly rotation: Node["rotation"];
  readonly scenes: SceneReport | null;
  readonly scene_wish: string | null;
  readonly scene_wish_number: string;
  readonly scene_wish_at: Date | null;
  readonly left_at: Date | null;
};

function fromRow(row: NodeRow): Node {
  const facts =
    row.facts === null
      ? null
      : {
          ...row.facts,
          memoryAvailableBytes: Number(row.memory_available_bytes ?? 0),
          devices: withAvailable(row.facts.devices, row.devices_available),
        };
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    online: row.is_online,
    lastHeartbeatAt: row.heartbeat_at?.toISOString() ?? null,
    clockOffsetMs: row.clock_offset_ms === null ? null : Number(row.clock_offset_ms),
    facts,
    running: Number(row.running),
    session: row.session_id === null ? null : { id: row.session_id, startedAt: row.session_at?.toISOString() ?? null },
    boundary:
      row.boundary_state === null
        ? null
        : {
            state: row.boundary_state,
            why: row.boundary_why,
            sequence: row.boundary_evidence?.sequence ?? null,
          },
    rivalAt: row.rival_at?.toISOString() ?? null,
    rotation: row.rotation,
    scenes: row.scenes,
    wish:
      row.scene_wish_at === null
        ? null
        : { number: row.scene_wish_number, scene: row.scene_wish, at: row.scene_wish_at.toISOString() },
    leftAt: row.left_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
  };
}

const SELECT_NODE = `
  select n.id, n.name, n.status, n.created_at, h.at as heartbeat_at, coalesce(${ONLINE}, false) as is_online,
         h.clock_offset_ms, h.memory_available_bytes, h.devices_available, f.facts, n.boundary_state, n.boundary_why, n.boundary_evidence, n.session_id, n.session_at, n.rival_at,
         h.scenes, n.left_at, n.scene_wish, n.scene_wish_number, n.scene_wish_at,
         case when n.offered_credential_id is not null then 'offered' when n.rotation_requested_at is not null then 'requested' end as rotation,
         (select count(*) from app.job j where j.organisation_id = n.organisation_id and j.node_id = n.id and j.lease_until is not null) as running
    from app.node n
    left join app.node_heartbeat h on h.organisation_id = n.organisation_id and h.node_id = n.id
    left join app.node_facts f on f.organisation_id = n.organisation_id and f.node_id = n.id`;

/** heartbeatMs: the interval that nodes are told to keep. */
export async function listNodes(tx: Tx, heartbeatMs: number): Promise<readonly Node[]> {
  const { rows } = await tx.query<NodeRow>(`${SELECT_NODE} order by n.status = 'retired', n.name, n.id limit 10000`, [
    heartbeatMs,
  ]);
  return rows.map(fromRow);
}

export async function findNode(tx: Tx, heartbeatMs: number, id: string): Promise<Node | undefined> {
  const row = await tx.maybeOne<NodeRow>(`${SELECT_NODE} where n.id = $2`, [heartbeatMs, id]);
  return row === undefined ? undefined : fromRow(row);
}

/** The one that has the name now: a retired node has none. */
export async function findNodeByName(
  tx: Tx,
  heartbeatMs: number,
  name: string,
): Promise<(Node & { readonly id: NodeId }) | undefined> {
  const row = await tx.maybeOne<NodeRow>(`${SELECT_NODE} where n.name = $2 and n.status <> 'retired'`, [
    heartbeatMs,
    name,
  ]);
  return row === undefined ? undefined : { ...fromRow(row), id: row.id };
}

const nextStatus = { drain: "draining", activate: "active", retire: "retired" } as const satisfies Partial<
  Record<NodeAction, NodeStatus>
>;
export type StatusAction = keyof typeof nextStatus;

/** False when the node is not in a status that allows the action. Retiring also revokes its credentials. */
export async function changeStatus(tx: Tx, id: string, action: StatusAction): Promise<boolean> {
  const { count } = await tx.query(
    `update app.node set status = $2, retired_at = case when $2 = 'retired' then now() end,
            session_id = case when $2 = 'retired' then null else session_id end
      where id = $1 and status = any($3)`,
    [id, nextStatus[action], nodeCan[action].statuses],
  );
  if (count === 0) return false;
  if (action === "retire") {
    await tx.query("update app.credential set revoked_at = now() where node_id = $1 and revoked_at is null", [id]);
  }
  return true;
}

/** A new session takes the node over; the one before is refused from now on. Returns the status, undefined when there is no such node. */
export async function beginSession(tx: Tx, id: NodeId, sessionId: SessionId): Promise<NodeStatus | undefined> {
  const row = await tx.maybeOne<{ status: NodeStatus }>(
    `update app.node set session_id = case when status = 'retired' then null else $2 end, session_at = now(), claim_number = 0, left_at = null where id = $1 returning status`,
    [id, sessionId],
  );
  return row?.status;
}

export type Beat = {
  readonly organisationId: OrganisationId;
  readonly nodeId: NodeId;
  readonly facts: NodeFacts;
  /** The node's wall clock when it sent the heartbeat. */
  readonly nodeNow: string;
};

/** Writes the heartbeat; the facts only when they differ from what is stored, what is free aside. */
export async function writeHeartbeat(tx: Tx, beat: Beat): Promise<void> {
  const { memoryAvailableBytes, devices, ...rest } = beat.facts;
  const lasting = { ...rest, devices: withAvailable(devices, null) };
  const available = devices.map((device) => device.memoryAvailableBytes);
  await tx.query(
    `insert into app.node_heartbeat (organisation_id, node_id, at, clock_offset_ms, memory_available_bytes, devices_available)
     values ($1, $2, now(), round(extract(epoch from $3::timestamptz - now()) * 1000), $4, $5)
     on conflict (organisation_id, node_id) do update
       set at = excluded.at, clock_offset_ms = excluded.clock_offset_ms, memory_available_bytes = excluded.memory_available_bytes,
           devices_available = excluded.devices_available`,
    [beat.organisationId, beat.nodeId, beat.nodeNow, memoryAvailableBytes, JSON.stringify(available)],
  );
  await tx.query(
    `insert into app.node_facts as f (organisation_id, node_id, facts) values ($1, $2, $3)
     on conflict (organisation_id, node_id) do update set facts = excluded.facts, at = now() where f.facts <> excluded.facts`,
    [beat.organisationId, beat.nodeId, JSON.stringify(lasting)],
  );
}

export type SessionState = {
  readonly status: NodeStatus;
  readonly isCurrent: boolean;
  readonly isRotationAsked: boolean;
};

/** Whether the session is the node's present one. */
export async function readSession(tx: Tx, id: NodeId, sessionId: string): Promise<SessionState | undefined> {
  const row = await tx.maybeOne<{ status: NodeStatus; is_current: boolean; is_rotation_asked: boolean }>(
    `select status, coalesce(session_id = $2, false) as is_current, rotation_requested_at is not null as is_rotation_asked
       from app.node where id = $1`,
    [id, sessionId],
  );
  return row === undefined
    ? undefined
    : { status: row.status, isCurrent: row.is_current, isRotationAsked: row.is_rotation_asked };
}

/** An agent spoke for a session that is not the present one: it runs beside the one that is. Written once in 10 s at most. */
export async function noteRival(tx: Tx, id: NodeId): Promise<void> {
  await tx.query(
    `update app.node set rival_at = now()
      where id = $1 and status <> 'retired' and (rival_at is null or rival_at < now() - interval '10 seconds')`,
    [id],
  );
}
