// SPDX-License-Identifier: Apache-2.0
// The registry of projects.

import { isUniqueViolation } from "../../db/pool.ts";
import { Failure } from "../../std/errors.ts";
import { insertAudit } from "../audit/audit-store.ts";
import { actorOf } from "../access/credential.ts";
import type { Context } from "../context.ts";
import type { Handlers } from "../http/reply.ts";
import { insertProject, listProjects, retireProject } from "./project-store.ts";

export function projectRoutes(context: Context): Handlers<"projectAdd" | "projectList" | "projectRetire"> {
  const { db, ids } = context;
  return {
    projectAdd: ({ caller, body }) => {
      const id = ids("proj");
      const { organisationId } = caller;
      const { name, description = "" } = body;
      return db
        .tenant(caller, async (tx) => {
          const project = await insertProject(tx, { organisationId, id, name, description });
          const audit = { organisationId, id: ids("aud"), actor: actorOf(caller), action: "project.add", subject: id };
          await insertAudit(tx, { ...audit, data: { name } });
          return project;
        })
        .catch((error: unknown) => {
          if (!isUniqueViolation(error, "project_name")) throw error;
          throw new Failure("conflict", `a project named ${name} is registered: retire it or choose another name`, {
            cause: error,
          });
        });
    },
    projectList: async ({ caller }) => ({ items: [...(await db.tenant(caller, listProjects))], nextCursor: null }),
    projectRetire: ({ caller, params }) =>
      db.tenant(caller, async (tx) => {
        const retired = await retireProject(tx, params.projectId);
        if (retired === undefined)
          throw new Failure("not_found", `there is no project ${params.projectId}; see: holdfast project list`);
        if (!retired.isChanged) throw new Failure("conflict", `${retired.project.name} is retired already`);
        const { organisationId } = caller;
        const audit = { organisationId, id: ids("aud"), actor: actorOf(caller), action: "project.retire" };
        await insertAudit(tx, { ...audit, subject: params.projectId, data: { name: retired.project.name } });
        return retired.project;
      }),
  };
}
