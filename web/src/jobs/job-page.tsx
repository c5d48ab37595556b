// SPDX-License-Identifier: Apache-2.0
// One job: where it is and why, what it does, its ledger, its output.

import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { isFinal, jobCan } from "../../../src/protocol/job.ts";
import type { JobDetail } from "../../../src/protocol/job-schema.ts";
import { type Needs, needsText } from "../../../src/protocol/placement.ts";
import { shellLine, shorten, span } from "../../../src/std/text.ts";
import { useParam } from "../app/address.ts";
import { useAction, useApi } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { ActionButton } from "../parts/button.tsx";
import { FailureOf, Loaded } from "../parts/failure.tsx";
import { type Fact, fact, Facts, Page, Section } from "../parts/page.tsx";
import { JobState } from "../parts/state.tsx";
import { Copy } from "../parts/copy.tsx";
import { Foreign, ForeignBlock } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";
import { JobEvents } from "./job-events.tsx";
import { JobLog } from "./job-log.tsx";
import { JobWhy } from "./job-why.tsx";

export function JobPage(): ReactNode {
  const jobId = useParam("jobId");
  const job = useApi("jobShow", { params: { jobId } });
  return (
    <Loaded query={job}>
      {(data) => (
        <Page title="Job" heading={<JobHeading job={data} />} actions={<JobActions job={data} />}>
          <Reason job={data} />
          <JobFacts job={data} />
          <JobWhy job={data} />
          <JobLog key={data.id} jobId={data.id} />
          <JobEvents jobId={data.id} />
          <Payload job={data} />
        </Page>
      )}
    </Loaded>
  );
}

function JobHeading({ job }: { readonly job: JobDetail }) {
  return (
    <>
      <JobState job={job} /> <Foreign text={shorten(shellLine(job.command), 80)} isCode />
    </>
  );
}

function JobActions({ job }: { readonly job: JobDetail }) {
  const cancel = useAction("jobCancel");
  const whyNotRoute = useWhyNot("jobCancel");
  const states: readonly string[] = jobCan.cancel.states;
  const whyNot = states.includes(job.state) ? whyNotRoute : jobCan.cancel.otherwise;
  return (
    <>
      <FailureOf error={cancel.error} />
      <ActionButton
        kind="danger"
        whyNot={whyNot}
        isPending={cancel.isPending}
        onClick={() => cancel.mutate({ params: { jobId: job.id } })}
      >
        Cancel
      </ActionButton>
    </>
  );
}

/** The reason in words, above everything else. */
function Reason({ job }: { readonly job: JobDetail }) {
  const texts = [job.blocked, job.reason, job.message].filter((text) => text !== null);
  const asked =
    job.cancelRequested && !isFinal(job.state)
      ? ["cancellation was requested; its node stops it with the next renewal"]
      : [];
  if (texts.length + asked.length === 0) return null;
  return (
    <div className={job.blocked === null ? "note" : "note warn"}>
      {[...new Set([...texts, ...asked])].map((text) => (
        <p key={text}>
          {text === job.blocked && "▲ blocked: "}
          <Foreign text={text} />
        </p>
      ))}
    </div>
  );
}

function lasted(job: JobDetail): string | null {
  if (job.startedAt === null || job.finishedAt === null) return null;
  return span(Math.round((Date.parse(job.finishedAt) - Date.parse(job.startedAt)) / 1000));
}

function JobFacts({ job }: { readonly job: JobDetail }) {
  const { requires } = job;
  const rows: readonly Fact[] = [
    fact(
      "Id",
      <>
        <code>{job.id}</code> <Copy text={job.id} what="the job's id" />
      </>,
    ),
    fact(
      "Node",
      job.nodeId === null ? null : (
        <Link to="/nodes/$nodeId" params={{ nodeId: job.nodeId }}>
          <Foreign text={job.nodeName ?? job.nodeId} />
        </Link>
      ),
    ),
    fact("Exit code", job.exitCode),
    fact(
      "Attempts",
      `${job.attempt} of ${job.retry.maxAttempts}${job.retry.onFailure ? ", a failure is tried again" : ", only a lost one is tried again"}`,
    ),
    fact("Epoch", job.epoch),
    fact("Submitted", <Ago at={job.createdAt} />),
    fact("Not before", job.notBefore === null ? null : <Ago at={job.notBefore} />),
    fact("Started", job.startedAt === null ? null : <Ago at={job.startedAt} />),
    fact("Ended", job.finishedAt === null ? null : <Ago at={job.finishedAt} />),
    fact("Ran for", lasted(job)),
    fact(
      "Project",
      job.project === null ? null : (
        <Link to="/jobs" search={{ project: job.project }}>
          {job.project}
        </Link>
      ),
    ),
    fact("Model", requires.model),
    fact("Needs", needsText(needsOf(requires)) || null),
    fact("Needs scene", requires.scene),
    fact("Needs served model", requires.servedModel),
    fact(
      "Only on",
      requires.nodeId === undefined ? null : (
        <Link to="/nodes/$nodeId" params={{ nodeId: requires.nodeId }}>
          <code className="cut">{requires.nodeId}</code>
        </Link>
      ),
    ),
    fact("Priority", job.priority),
    fact("Time limit", job.timeLimitMs === null ? null : span(job.timeLimitMs / 1000)),
    fact("Directory", job.workingDirectory === null ? null : <Foreign text={job.workingDirectory} isCode />),
    ...Object.entries(job.labels).map(([name, value]) => fact(`Label ${name}`, <Foreign text={value} />)),
  ];
  return <Facts rows={rows} />;
}

/** What has no line of its own among the facts. */
function needsOf({ model: _m, nodeId: _n, scene: _s, servedModel: _v, ...needs }: JobDetail["requires"]): Needs {
  return needs;
}

/** The exact arguments, environment, input and result. Numbers that JSON would round never get here as numbers. */
function Payload({ job }: { readonly job: JobDetail }) {
  const variables = Object.entries(job.environment);
  return (
    <>
      {job.result !== null && job.result !== undefined && (
        <Section title="Result">
          <ForeignBlock label="Result" text={JSON.stringify(job.result, null, 2)} />
        </Section>
      )}
      <Section title="Arguments">
        <ForeignBlock
          label="Arguments"
          text={job.command.map((argument, index) => `${index}  ${JSON.stringify(argument)}`).join("\n")}
        />
      </Section>
      {variables.length > 0 && (
        <Section title="Environment">
          <ForeignBlock
            label="Environment"
            text={variables.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join("\n")}
          />
        </Section>
      )}
      {job.input !== null && job.input !== undefined && (
        <Section title="Input">
          <ForeignBlock label="Input" text={JSON.stringify(job.input, null, 2)} />
        </Section>
      )}
    </>
  );
}
