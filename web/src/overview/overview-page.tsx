// SPDX-License-Identifier: Apache-2.0
// The first page: what is wrong comes first, then how busy the fleet is, and what runs now.

import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import type { Overview } from "../../../src/protocol/access-schema.ts";
import { useApi } from "../app/api.ts";
import { AttentionList } from "../parts/attention.tsx";
import { Loaded } from "../parts/failure.tsx";
import { Page, Section, Table } from "../parts/page.tsx";
import { CommandLine } from "../parts/copy.tsx";
import { runningColumns } from "../jobs/job-columns.tsx";
import { nodeColumns } from "../nodes/node-columns.tsx";
import { ThroughputSection } from "./throughput-section.tsx";

export function OverviewPage(): ReactNode {
  const overview = useApi("overview", {});
  return (
    <Page title="Overview">
      <Loaded query={overview}>
        {(data) => (
          <>
            <Attention items={data.attention} />
            <Tiles overview={data} />
          </>
        )}
      </Loaded>
      <ThroughputSection />
      <RunningJobs />
      <NodesInShort />
    </Page>
  );
}

function Attention({ items }: { readonly items: Overview["attention"] }) {
  if (items.length > 0) return <AttentionList items={items} />;
  return (
    <p className="well" role="status">
      <span aria-hidden="true">●</span> All is well
    </p>
  );
}

function Tiles({ overview }: { readonly overview: Overview }) {
  const { nodes, slots, jobs, blockedJobs } = overview;
  const away = [
    nodes.offline > 0 ? `${nodes.offline} offline` : "",
    nodes.draining > 0 ? `${nodes.draining} draining` : "",
  ];
  return (
    <dl className="tiles">
      <Tile
        name="Nodes online"
        value={`${nodes.online}`}
        about={away.filter((text) => text !== "").join(", ") || "none offline"}
      />
      <Tile name="Slots busy" value={`${slots.busy} of ${slots.all}`} about={`${slots.all - slots.busy} free`} />
      <Tile
        name="Jobs waiting"
        value={`${jobs.queued + jobs.scheduled}`}
        about={waitingText(jobs.scheduled, blockedJobs)}
      />
      <Tile
        name="Jobs running"
        value={`${jobs.running + jobs.leased}`}
        about={jobs.leased > 0 ? `${jobs.leased} about to begin` : "none about to begin"}
      />
    </dl>
  );
}

function waitingText(scheduled: number, blocked: number): string {
  const parts = [blocked > 0 ? `${blocked} blocked` : "", scheduled > 0 ? `${scheduled} for a time` : ""];
  return parts.filter((text) => text !== "").join(", ") || "none blocked";
}

function Tile({ name, value, about }: { readonly name: string; readonly value: string; readonly about: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <strong>{value}</strong>
        <span className="quiet">{about}</span>
      </dd>
    </div>
  );
}

const SHORT = 8;

function RunningJobs() {
  const running = useApi("jobList", { query: { state: "running", limit: SHORT } });
  const latest = useApi("jobList", { query: { limit: 1 } });
  const isNew = latest.data?.items.length === 0;
  return (
    <Section title="Running jobs" actions={<Link to="/jobs">All jobs</Link>}>
      <Loaded query={running}>
        {({ items }) => (
          <Table
            label="Running jobs"
            columns={runningColumns}
            rows={items}
            keyOf={(job) => job.id}
            empty={
              isNew ? (
                <>
                  <p>No job yet. The first one:</p>
                  <CommandLine text="npx holdfast job run -- echo hello" />
                </>
              ) : (
                <p>Nothing runs now.</p>
              )
            }
          />
        )}
      </Loaded>
    </Section>
  );
}

function NodesInShort() {
  const nodes = useApi("nodeList", {});
  return (
    <Section title="Nodes" actions={<Link to="/nodes">All nodes</Link>}>
      <Loaded query={nodes}>
        {({ items }) => (
          <Table
            label="Nodes"
            columns={nodeColumns}
            rows={items.filter((node) => node.status !== "retired").slice(0, SHORT)}
            keyOf={(node) => node.id}
            empty={
              <>
                <p>No node yet. A machine joins with a code:</p>
                <CommandLine text="npx holdfast node pair NAME" />
              </>
            }
          />
        )}
      </Loaded>
    </Section>
  );
}
