// SPDX-License-Identifier: Apache-2.0
// What a list of jobs is filtered by.

import { type JobState, jobStates } from "../../../src/protocol/job.ts";

export type JobFilters = {
  readonly state?: JobState | undefined;
  readonly nodeId?: string | undefined;
  readonly project?: string | undefined;
  readonly search?: string | undefined;
};

export function isJobState(text: string): text is JobState {
  return jobStates.some((state) => state === text);
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
