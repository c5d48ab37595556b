// SPDX-License-Identifier: Apache-2.0
// Why a job waits: the answer, what each node says, who holds what it waits for. All of it in the controller's words.

import { Link } from "@tanstack/react-router";
import { isFinal } from "../../../src/protocol/job.ts";
import type { JobDetail } from "../../../src/protocol/job-schema.ts";
import type { WhyHolder, WhyNode } from "../../../src/protocol/placement-schema.ts";
import { gibibytes } from "../../../src/protocol/placement.ts";
import { useApi } from "../app/api.ts";
import { Loaded } from "../parts/failure.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { type Column, none, Section, Table } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";

export function JobWhy({ job }: { readonly job: JobDetail }) {
  const isWaiting = !isFinal(job.state) && job.nodeId === null;
  const why = useApi("jobWhy", { params: { jobId: job.id } }, { isEnabled: isWaiting });
  if (!isWaiting) return null;
  return (
    <>
      <Section title="Why it waits">
        <Loaded query={why}>
          {({ text, nodes }) => (
            <>
              {/* A blocked one has its reason above. */}
              {job.blocked === null && (
                <div className="note">
                  <Foreign text={text} />
                </div>
              )}
              <Table
                label="What each node says"
                columns={nodeColumns}
                rows={nodes}
                keyOf={(node) => node.nodeId}
                empty={<p>There is no node.</p>}
              />
            </>
          )}
        </Loaded>
      </Section>
      {why.data !== undefined && why.data.holders.length > 0 && (
        <Section title="Who holds what it waits for">
          <Table
            label="Who holds it"
            columns={holderColumns}
            rows={why.data.holders}
            keyOf={(holder) => holder.jobId}
            empty={null}
          />
        </Section>
      )}
    </>
  );
}

const nodeColumns: readonly Column<WhyNode>[] = [
  {
    head: "Node",
    cell: ({ nodeId, name }) => (
      <Link to="/nodes/$nodeId" params={{ nodeId }}>
        <Foreign text={name} />
      </Link>
    ),
  },
  {
    head: "Verdict",
    cell: ({ verdict, path }) => <State tone={path === null ? "gone" : "good"} text={verdict.replaceAll("-", " ")} />,
  },
  {
    head: "Now",
    cell: ({ path, startsNow }) =>
      path === null ? none : <State tone={startsNow ? "good" : "wait"} text={startsNow ? `${path} path` : "not now"} />,
  },
  { head: "Why", cell: ({ text }) => (text === "" ? none : <Foreign text={text} />), isWide: true },
];

const holderColumns: readonly Column<WhyHolder>[] = [
  {
    head: "Held by",
    cell: ({ jobId }) => (
      <Link to="/jobs/$jobId" params={{ jobId }}>
        <code className="cut">{jobId}</code>
      </Link>
    ),
  },
  { head: "Node", cell: ({ nodeName }) => <Foreign text={nodeName} /> },
  { head: "State", cell: ({ state }) => state },
  { head: "Asked for", cell: ({ bytes }) => (bytes === 0 ? "a slot" : gibibytes(bytes)), isNumber: true },
];
