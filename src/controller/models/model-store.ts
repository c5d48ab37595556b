// SPDX-License-Identifier: Apache-2.0
// Registered models. A retired one stays for the jobs that named it; its name is free again.

import type { Model, ModelNeeds } from "../../protocol/registry-schema.ts";
import type { Tx } from "../../db/pool.ts";
import type { ModelId, OrganisationId } from "../../std/ids.ts";

type ModelRow = {
  readonly id: ModelId;
  readonly name: string;
  readonly needs: ModelNeeds;
  readonly marker: string | null;
  readonly description: string;
  readonly created_at: Date;
  readonly retired_at: Date | null;
};

function fromRow(row: ModelRow): Model {
  return {
    id: row.id,
    name: row.name,
    needs: row.needs,
    marker: row.marker,
    description: row.description,
    createdAt: row.created_at.toISOString(),
    retiredAt: row.retired_at?.toISOString() ?? null,
  };
}

const COLUMNS = "id, name, needs, marker, description, created_at, retired_at";

export type NewModel = {
  readonly organisationId: OrganisationId;
  readonly id: ModelId;
  readonly name: string;
  readonly needs: ModelNeeds;
  readonly marker: string | null;
  readonly description: string;
};

export async function insertModel(tx: Tx, model: NewModel): Promise<Model> {
  const { organisationId, id, name, needs, marker, description } = model;
  const row = await tx.one<ModelRow>(
    `insert into app.model (organisation_id, id, name, needs, marker, description) values ($1, $2, $3, $4, $5, $6) returning ${COLUMNS}`,
    [organisationId, id, name, JSON.stringify(needs), marker, description],
  );
  return fromRow(row);
}

export async function listModels(tx: Tx): Promise<readonly Model[]> {
  const { rows } = await tx.query<ModelRow>(
    `select ${COLUMNS} from app.model order by retired_at is not null, name, id limit 10000`,
    [],
  );
  return rows.map(fromRow);
}

/** One that is not retired. */
export async function findModelByName(tx: Tx, name: string): Promise<Model | undefined> {
  const row = await tx.maybeOne<ModelRow>(`select ${COLUMNS} from app.model where name = $1 and retired_at is null`, [
    name,
  ]);
  return row === undefined ? undefined : fromRow(row);
}

/** Returns the model as it is afterwards, and whether this call retired it. */
export async function retireModel(tx: Tx, id: string): Promise<{ model: Model; isChanged: boolean } | undefined> {
  const { count } = await tx.query("update app.model set retired_at = now() where id = $1 and retired_at is null", [
    id,
  ]);
  const row = await tx.maybeOne<ModelRow>(`select ${COLUMNS} from app.model where id = $1`, [id]);
  return row === undefined ? undefined : { model: fromRow(row), isChanged: count === 1 };
}
