// SPDX-License-Identifier: Apache-2.0
// One job: where it is and why, what it does, its ledger, its output.

import { getRouteApi, Link } from "@tanstack/react-router";
import { isFinal, jobCan } from "../../../src/protocol/job.ts";
import type { JobDetail } from "../../../src/protocol/job-schema.ts";
import { sizeText } from "../../../src/std/units.ts";
import { commandLine, span } from "../../../src/std/text.ts";
import { useAction, useApi } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { ActionButton } from "../parts/button.tsx";
import { FailureOf, Loaded } from "../parts/failure.tsx";
import { type Fact, Facts, Page, Section } from "../parts/page.tsx";
import { JobState } from "../parts/state.tsx";
import { Copy, Foreign, ForeignBlock } from "../parts/text.tsx";
import { Ago } from "../parts/time.tsx";
import { JobEvents } from "./job-events.tsx";
import { JobLog } from "./job-log.tsx";

const route = getRouteApi("/inside/jobs/$jobId");

export function JobPage() {
  const { jobId } = route.useParams();
  const job = useApi("jobShow", { params: { jobId } });
  return (
    <Loaded query={job}>
      {(data) => (
        <Page title="Job" heading={<JobHeading job={data} />} actions={<JobActions job={data} />}>
          <Reason job={data} />
          <JobFacts job={data} />
          <JobLog key={data.id} jobId={data.id} isEnded={isFinal(data.state)} />
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
      <JobState job={job} /> <bdi className="code">{commandLine(job.command, 80)}</bdi>
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
    [
      "Id",
      <>
        <code>{job.id}</code> <Copy text={job.id} what="the job's id" />
      </>,
    ],
    [
      "Node",
      job.nodeId === null ? null : (
        <Link to="/nodes/$nodeId" params={{ nodeId: job.nodeId }}>
          <Foreign text={job.nodeName ?? job.nodeId} />
        </Link>
      ),
    ],
    ["Exit code", job.exitCode],
    [
      "Attempts",
      `${job.attempt} of ${job.retry.maxAttempts}${job.retry.onFailure ? ", a failure is tried again" : ", only a lost one is tried again"}`,
    ],
    ["Epoch", job.epoch],
    ["Submitted", <Ago at={job.createdAt} />],
    ["Not before", job.notBefore === null ? null : <Ago at={job.notBefore} />],
    ["Started", job.startedAt === null ? null : <Ago at={job.startedAt} />],
    ["Ended", job.finishedAt === null ? null : <Ago at={job.finishedAt} />],
    ["Ran for", lasted(job)],
    [
      "Project",
      job.project === null ? null : (
        <Link to="/jobs" search={{ project: job.project }}>
          {job.project}
        </Link>
      ),
    ],
    ["Model", requires.model],
    ["Needs memory", requires.memoryBytes === undefined ? null : sizeText(requires.memoryBytes)],
    ["Needs architecture", requires.arch],
    [
      "Only on",
      requires.nodeId === undefined ? null : (
        <Link to="/nodes/$nodeId" params={{ nodeId: requires.nodeId }}>
          <code className="cut">{requires.nodeId}</code>
        </Link>
      ),
    ],
    ["Priority", job.priority],
    ["Time limit", job.timeLimitMs === null ? null : span(job.timeLimitMs / 1000)],
    ["Directory", job.workingDirectory === null ? null : <Foreign text={job.workingDirectory} isCode />],
    ...Object.entries(job.labels).map(([name, value]): Fact => [`Label ${name}`, <Foreign text={value} />]),
  ];
  return <Facts rows={rows} />;
}

/** The exact arguments, environment, input and result. Numbers that JSON would round never get here as numbers. */
function Payload({ job }: { readonly job: JobDetail }) {
  const variables = Object.entries(job.environment);
  return (
    <>
      {job.result !== null && job.result !== undefined && (
        <Section title="Result">
          <ForeignBlock text={JSON.stringify(job.result, null, 2)} />
        </Section>
      )}
      <Section title="Arguments">
        <ForeignBlock text={job.command.map((argument, index) => `${index}  ${JSON.stringify(argument)}`).join("\n")} />
      </Section>
      {variables.length > 0 && (
        <Section title="Environment">
          <ForeignBlock text={variables.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join("\n")} />
        </Section>
      )}
      {job.input !== null && job.input !== undefined && (
        <Section title="Input">
          <ForeignBlock text={JSON.stringify(job.input, null, 2)} />
        </Section>
      )}
    </>
  );
}
