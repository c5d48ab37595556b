// SPDX-License-Identifier: Apache-2.0
// Health for machines, the overview for people: what is wrong comes first.

import { CLOCK_OFFSET_WARN_MS } from "../protocol/node.ts";
import type { Node } from "../protocol/node-schema.ts";
import type { Context } from "./context.ts";
import type { Handlers } from "./http/reply.ts";
import { countJobs } from "./jobs/job-store.ts";
import { listNodes } from "./nodes/node-store.ts";

export function overviewRoutes(context: Context): Handlers<"health" | "overview"> {
  const { db, config } = context;
  return {
    health: () => Promise.resolve({ status: "ok", version: config.version }),
    overview: async ({ caller }) => {
      const { nodes, jobs, blocked } = await db.tenant(caller, async (tx) => ({
        nodes: await listNodes(tx, config.heartbeatMs),
        jobs: await countJobs(tx),
        blocked: (
          await tx.query<{ blocked: string; jobs: string }>(
            `select l.blocked, count(*) as jobs from app.lane l
               join app.job j on j.organisation_id = l.organisation_id and j.lane_id = l.id and j.state = 'queued'
              where l.blocked is not null group by l.blocked order by 2 desc limit 5`,
            [],
          )
        ).rows,
      }));
      const inService = nodes.filter((node) => node.status !== "retired");
      return {
        version: config.version,
        organisationName: caller.organisationName,
        nodes: {
          online: inService.filter((node) => node.online).length,
          offline: inService.filter((node) => !node.online).length,
          draining: inService.filter((node) => node.status === "draining").length,
        },
        jobs,
        attention: [
          ...inService.flatMap(nodeAttention),
          ...blocked.map(
            (lane) => `${lane.jobs} ${lane.jobs === "1" ? "job is" : "jobs are"} blocked: ${lane.blocked}`,
          ),
        ],
      };
    },
  };
}

function nodeAttention(node: Node): string[] {
  if (!node.online)
    return [
      `node ${node.name} is offline, ${node.lastHeartbeatAt === null ? "never seen" : `last seen ${node.lastHeartbeatAt}`}`,
    ];
  const offsetMs = node.clockOffsetMs ?? 0;
  if (Math.abs(offsetMs) <= CLOCK_OFFSET_WARN_MS) return [];
  return [
    `the clock of node ${node.name} is ${Math.abs(offsetMs / 1000).toFixed(1)} s ${offsetMs > 0 ? "ahead" : "behind"}`,
  ];
}
