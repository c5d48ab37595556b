// SPDX-License-Identifier: Apache-2.0
// The columns of tables of jobs.

import { Link } from "@tanstack/react-router";
import type { Job } from "../../../src/protocol/job-schema.ts";
import { shellLine, shorten } from "../../../src/std/text.ts";
import { type Column, none } from "../parts/page.tsx";
import { JobState } from "../parts/state.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";

const COMMAND_LENGTH = 120;

const command: Column<Job> = {
  head: "Command",
  isWide: true,
  cell: (job) => (
    <Link to="/jobs/$jobId" params={{ jobId: job.id }} className="cut code" title={job.id}>
      <Foreign text={shorten(shellLine(job.command), COMMAND_LENGTH)} />
    </Link>
  ),
};

const state: Column<Job> = { head: "State", cell: (job) => <JobState job={job} /> };

export const nodeOfJob: Column<Job> = {
  head: "Node",
  cell: (job) =>
    job.nodeId === null ? (
      none
    ) : (
      <Link to="/nodes/$nodeId" params={{ nodeId: job.nodeId }}>
        <Foreign text={job.nodeName ?? job.nodeId} />
      </Link>
    ),
};

const why: Column<Job> = {
  head: "Why",
  isWide: true,
  cell: (job) => {
    const code = job.exitCode === null || job.exitCode === 0 ? null : `exit code ${job.exitCode}`;
    const text = job.blocked ?? code ?? job.reason;
    return text === null ? (
      none
    ) : (
      <span className="cut" title={text}>
        <Foreign text={text} />
      </span>
    );
  },
};

const created: Column<Job> = { head: "Submitted", cell: (job) => <Ago at={job.createdAt} /> };
const started: Column<Job> = { head: "Started", cell: (job) => <Ago at={job.startedAt} never="–" /> };
const project: Column<Job> = {
  head: "Project",
  cell: (job) =>
    job.project === null ? (
      none
    ) : (
      <Link to="/jobs" search={{ project: job.project }} className="cut">
        {job.project}
      </Link>
    ),
};

export const jobColumns = [state, command, nodeOfJob, project, why, created] as const;
export const runningColumns = [state, command, nodeOfJob, started] as const;
export const heldColumns = [state, command, started, created] as const;
