// SPDX-License-Identifier: Apache-2.0
// What a list of jobs is filtered by, as it stands in the address.

import { type JobState, jobStates } from "../../../src/protocol/job.ts";
import { searchText } from "../app/address.ts";

export type JobFilters = {
  readonly state?: JobState | undefined;
  readonly nodeId?: string | undefined;
  readonly project?: string | undefined;
  readonly search?: string | undefined;
};

export function stateOf(text: string | undefined): JobState | undefined {
  return jobStates.find((state) => state === text);
}

export function filtersOf(search: unknown): JobFilters {
  return {
    state: stateOf(searchText(search, "state")),
    nodeId: searchText(search, "nodeId"),
    project: searchText(search, "project"),
    search: searchText(search, "search"),
  };
}

/** As the route takes it: what is not set is not sent. */
export function queryOf({ state, nodeId, project, search }: JobFilters) {
  return {
    ...(state === undefined ? {} : { state }),
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(project === undefined ? {} : { project }),
    ...(search === undefined ? {} : { search }),
  };
}
