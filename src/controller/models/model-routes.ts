// SPDX-License-Identifier: Apache-2.0
// The registry of models: what each needs, and the marker that proves that a server is this model.

import { isUniqueViolation } from "../../db/pool.ts";
import { needFaults } from "../../protocol/placement.ts";
import { Failure } from "../../std/errors.ts";
import { insertAudit } from "../audit/audit-store.ts";
import { actorOf } from "../access/credential.ts";
import type { Context } from "../context.ts";
import type { Handlers } from "../http/reply.ts";
import { insertModel, listModels, retireModel } from "./model-store.ts";

export function modelRoutes(context: Context): Handlers<"modelAdd" | "modelList" | "modelRetire"> {
  const { db, ids } = context;
  return {
    modelAdd: ({ caller, body }) => {
      const id = ids("model");
      const { organisationId } = caller;
      const { name, needs = {}, marker = null, description = "" } = body;
      const details = needFaults(needs).map(({ field, problem }) => ({ place: `/needs/${field}`, problem }));
      const [first] = details;
      if (first !== undefined) throw new Failure("invalid_request", `${first.place}: ${first.problem}`, { details });
      return db
        .tenant(caller, async (tx) => {
          const model = await insertModel(tx, { organisationId, id, name, needs, marker, description });
          const audit = { organisationId, id: ids("aud"), actor: actorOf(caller), action: "model.add", subject: id };
          await insertAudit(tx, { ...audit, data: { name, needs } });
          return model;
        })
        .catch((error: unknown) => {
          if (!isUniqueViolation(error, "model_name")) throw error;
          throw new Failure("conflict", `a model named ${name} is registered: retire it or choose another name`, {
            cause: error,
          });
        });
    },
    modelList: async ({ caller }) => ({ items: [...(await db.tenant(caller, listModels))], nextCursor: null }),
    modelRetire: ({ caller, params }) =>
      db.tenant(caller, async (tx) => {
        const retired = await retireModel(tx, params.modelId);
        if (retired === undefined)
          throw new Failure("not_found", `there is no model ${params.modelId}; see: holdfast model list`);
        if (!retired.isChanged) throw new Failure("conflict", `${retired.model.name} is retired already`);
        const { organisationId } = caller;
        const audit = { organisationId, id: ids("aud"), actor: actorOf(caller), action: "model.retire" };
        await insertAudit(tx, { ...audit, subject: params.modelId, data: { name: retired.model.name } });
        return retired.model;
      }),
  };
}
