// SPDX-License-Identifier: Apache-2.0
// One node: what is wrong with it, what it has, what it holds, and what may be done to it.

import type { ReactNode } from "react";
import { useParam } from "../app/address.ts";
import { useApi } from "../app/api.ts";
import { Loaded } from "../parts/failure.tsx";
import { Page, Section, Table } from "../parts/page.tsx";
import { NodeState } from "../parts/state.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { heldColumns } from "../jobs/job-columns.tsx";
import { ScenesPart } from "../scenes/scenes-part.tsx";
import { NodeActions } from "./node-actions.tsx";
import { DeviceTable } from "./device-table.tsx";
import { NodeFactList } from "./node-facts.tsx";
import { BoundarySection, NodeWarnings } from "./node-warnings.tsx";

/** As often as a node tells of itself: most of it, such as its memory, wakes nobody. */
const REFETCH_MS = 5_000;

export function NodePage(): ReactNode {
  const nodeId = useParam("nodeId");
  const node = useApi("nodeShow", { params: { nodeId } }, { refetchMs: REFETCH_MS });
  return (
    <Loaded query={node}>
      {(data) => (
        <Page
          title={data.name}
          heading={
            <>
              <Foreign text={data.name} /> <NodeState node={data} />
            </>
          }
          actions={<NodeActions node={data} />}
        >
          <NodeWarnings node={data} />
          <NodeFactList node={data} />
          <BoundarySection boundary={data.boundary} />
          <ScenesPart node={data} seenAtMs={node.dataUpdatedAt} />
          {data.facts !== null && <DeviceTable devices={data.facts.devices} />}
          <HeldJobs nodeId={nodeId} />
        </Page>
      )}
    </Loaded>
  );
}

function HeldJobs({ nodeId }: { readonly nodeId: string }) {
  const leased = useApi("jobList", { query: { nodeId, state: "leased" } });
  const running = useApi("jobList", { query: { nodeId, state: "running" } });
  const latest = useApi("jobList", { query: { nodeId, limit: 10 } });
  return (
    <>
      <Section title="Jobs that it holds">
        <Loaded query={leased}>
          {(claimed) => (
            <Loaded query={running}>
              {({ items }) => (
                <Table
                  label="Jobs that it holds"
                  columns={heldColumns}
                  rows={[...claimed.items, ...items]}
                  keyOf={(job) => job.id}
                  empty={<p>It holds no job.</p>}
                />
              )}
            </Loaded>
          )}
        </Loaded>
      </Section>
      <Section title="Latest jobs on it">
        <Loaded query={latest}>
          {({ items }) => (
            <Table
              label="Latest jobs"
              columns={heldColumns}
              rows={items}
              keyOf={(job) => job.id}
              empty={<p>No job ran here yet.</p>}
            />
          )}
        </Loaded>
      </Section>
    </>
  );
}
