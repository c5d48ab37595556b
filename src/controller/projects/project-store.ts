// SPDX-License-Identifier: Apache-2.0
// Registered projects: what jobs are grouped by.

import { finalStates } from "../../protocol/job.ts";
import type { Project } from "../../protocol/registry-schema.ts";
import type { Tx } from "../../db/pool.ts";
import type { OrganisationId, ProjectId } from "../../std/ids.ts";

type ProjectRow = {
  readonly id: ProjectId;
  readonly name: string;
  readonly description: string;
  readonly created_at: Date;
  readonly retired_at: Date | null;
  readonly open_jobs: string;
};

function fromRow(row: ProjectRow): Project {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    createdAt: row.created_at.toISOString(),
    retiredAt: row.retired_at?.toISOString() ?? null,
    openJobs: Number(row.open_jobs),
  };
}

const SELECT_PROJECT = `
  select p.id, p.name, p.description, p.created_at, p.retired_at,
         (select count(*) from app.job j where j.organisation_id = p.organisation_id and j.project_id = p.id
                                           and j.state <> all($1)) as open_jobs
    from app.project p`;

export type NewProject = {
  readonly organisationId: OrganisationId;
  readonly id: ProjectId;
  readonly name: string;
  readonly description: string;
};

export async function insertProject(tx: Tx, project: NewProject): Promise<Project> {
  await tx.query("insert into app.project (organisation_id, id, name, description) values ($1, $2, $3, $4)", [
    project.organisationId,
    project.id,
    project.name,
    project.description,
  ]);
  return fromRow(await tx.one<ProjectRow>(`${SELECT_PROJECT} where p.id = $2`, [finalStates, project.id]));
}

export async function listProjects(tx: Tx): Promise<readonly Project[]> {
  const { rows } = await tx.query<ProjectRow>(
    `${SELECT_PROJECT} order by p.retired_at is not null, p.name, p.id limit 10000`,
    [finalStates],
  );
  return rows.map(fromRow);
}

/** The id of one that is not retired. */
export async function findProjectId(tx: Tx, name: string): Promise<ProjectId | undefined> {
  const row = await tx.maybeOne<{ id: ProjectId }>(
    "select id from app.project where name = $1 and retired_at is null",
    [name],
  );
  return row?.id;
}

/** Returns the project as it is afterwards, and whether this call retired it. */
export async function retireProject(tx: Tx, id: string): Promise<{ project: Project; isChanged: boolean } | undefined> {
  const { count } = await tx.query("update app.project set retired_at = now() where id = $1 and retired_at is null", [
    id,
  ]);
  const row = await tx.maybeOne<ProjectRow>(`${SELECT_PROJECT} where p.id = $2`, [finalStates, id]);
  return row === undefined ? undefined : { project: fromRow(row), isChanged: count === 1 };
}
