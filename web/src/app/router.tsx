// SPDX-License-Identifier: Apache-2.0
// The addresses of the page. What a page filters by stands in its address, so that it can be sent to somebody.

import { createRootRoute, createRoute, createRouter } from "@tanstack/react-router";
import { filtersOf } from "../jobs/job-filters.ts";
import { auditFiltersOf } from "../audit/audit-filters.ts";
import { AccountPage } from "../people/account-page.tsx";
import { AuditPage } from "../audit/audit-page.tsx";
import { CredentialsPage } from "../people/credentials-page.tsx";
import { JobPage } from "../jobs/job-page.tsx";
import { JobsPage } from "../jobs/jobs-page.tsx";
import { ModelsPage } from "../registries/models-page.tsx";
import { NodePage } from "../nodes/node-page.tsx";
import { NodesPage } from "../nodes/nodes-page.tsx";
import { OverviewPage } from "../overview/overview-page.tsx";
import { PeoplePage } from "../people/people-page.tsx";
import { ProjectsPage } from "../registries/projects-page.tsx";
import { SubmitPage } from "../jobs/submit-page.tsx";
import { Gate } from "./gate.tsx";
import { NotFound, PageFault } from "./page-fault.tsx";
import { SignInPage } from "./sign-in-page.tsx";

const root = createRootRoute();
const signIn = createRoute({ getParentRoute: () => root, path: "/sign-in", component: SignInPage });
const inside = createRoute({ getParentRoute: () => root, id: "inside", component: Gate });

const jobs = createRoute({
  getParentRoute: () => inside,
  path: "/jobs",
  component: JobsPage,
  validateSearch: filtersOf,
});
const audit = createRoute({
  getParentRoute: () => inside,
  path: "/audit",
  component: AuditPage,
  validateSearch: auditFiltersOf,
});

const tree = root.addChildren([
  signIn,
  inside.addChildren([
    createRoute({ getParentRoute: () => inside, path: "/", component: OverviewPage }),
    createRoute({ getParentRoute: () => inside, path: "/nodes", component: NodesPage }),
    createRoute({ getParentRoute: () => inside, path: "/nodes/$nodeId", component: NodePage }),
    jobs,
    createRoute({ getParentRoute: () => inside, path: "/jobs/new", component: SubmitPage }),
    createRoute({ getParentRoute: () => inside, path: "/jobs/$jobId", component: JobPage }),
    createRoute({ getParentRoute: () => inside, path: "/models", component: ModelsPage }),
    createRoute({ getParentRoute: () => inside, path: "/projects", component: ProjectsPage }),
    createRoute({ getParentRoute: () => inside, path: "/people", component: PeoplePage }),
    createRoute({ getParentRoute: () => inside, path: "/credentials", component: CredentialsPage }),
    createRoute({ getParentRoute: () => inside, path: "/account", component: AccountPage }),
    audit,
  ]),
]);

export const router = createRouter({
  routeTree: tree,
  defaultNotFoundComponent: NotFound,
  defaultErrorComponent: PageFault,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
