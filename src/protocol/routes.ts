// SPDX-License-Identifier: Apache-2.0
// The route table: every address of the controller. Node routes and people routes are disjoint, pinned by a test.

import { agentRoutes } from "./routes/agent.ts";
import { enrolRoutes } from "./routes/enrol.ts";
import { jobRoutes } from "./routes/jobs.ts";
import { nodeRoutes } from "./routes/nodes.ts";
import { operationRoutes } from "./routes/operations.ts";
import { peopleRoutes } from "./routes/people.ts";
import { registryRoutes } from "./routes/registries.ts";

export const routes = {
  ...operationRoutes,
  ...peopleRoutes,
  ...nodeRoutes,
  ...jobRoutes,
  ...registryRoutes,
  ...enrolRoutes,
  ...agentRoutes,
} as const;

export type RouteName = keyof typeof routes;
export type RouteOf<Name extends RouteName> = (typeof routes)[Name];
