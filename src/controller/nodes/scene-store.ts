// SPDX-License-Identifier: Apache-2.0
// The scenes of a node as it told them last, and what a person asked it for. Rule: a wish has a number, and a node acts on each
// number once.

import type { SceneReport, SceneWish } from "../../protocol/scene-schema.ts";
import type { Tx } from "../../db/pool.ts";
import type { NodeId } from "../../std/ids.ts";

/** After the heartbeat's own row is there. */
export async function writeSceneReport(tx: Tx, id: NodeId, report: SceneReport | undefined): Promise<void> {
  if (report === undefined) return;
  await tx.query("update app.node_heartbeat set scenes = $2 where node_id = $1", [id, JSON.stringify(report)]);
}

/** Undefined: the node is not there, or retired. */
export async function requestScene(tx: Tx, id: string, scene: string | null): Promise<SceneWish | undefined> {
  const row = await tx.maybeOne<{ scene_wish_number: string }>(
    `update app.node set scene_wish = $2, scene_wish_number = scene_wish_number + 1, scene_wish_at = now()
      where id = $1 and status <> 'retired' returning scene_wish_number`,
    [id, scene],
  );
  return row === undefined ? undefined : { number: row.scene_wish_number, scene };
}

/** What the node is told with each heartbeat. */
export async function readWish(tx: Tx, id: NodeId): Promise<SceneWish | null> {
  const row = await tx.maybeOne<{ scene_wish: string | null; scene_wish_number: string }>(
    "select scene_wish, scene_wish_number from app.node where id = $1 and scene_wish_number > 0",
    [id],
  );
  return row === undefined ? null : { number: row.scene_wish_number, scene: row.scene_wish };
}
