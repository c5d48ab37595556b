// SPDX-License-Identifier: Apache-2.0
// Jobs that ended in the last hour, minute by minute: a graph, and the same in one sentence.

import type { Throughput } from "../../../src/protocol/access-schema.ts";
import { useApi } from "../app/api.ts";
import { Loaded } from "../parts/failure.tsx";
import { Section } from "../parts/page.tsx";
import { ThroughputGraph } from "./throughput-graph.tsx";

const MINUTES = 60;
const REFETCH_MS = 30_000;

export function ThroughputSection() {
  const throughput = useApi("throughput", { query: { minutes: MINUTES } }, { refetchMs: REFETCH_MS });
  return (
    <Section title="Jobs that ended, last 60 minutes">
      <Loaded query={throughput}>
        {({ minutes }) => (
          <>
            <ThroughputGraph minutes={minutes} />
            <p className="quiet">{summary(minutes)}</p>
          </>
        )}
      </Loaded>
    </Section>
  );
}

function summary(minutes: Throughput["minutes"]): string {
  const sum = (key: "succeeded" | "failed" | "cancelled"): number =>
    minutes.reduce((all, minute) => all + minute[key], 0);
  const [succeeded, failed, cancelled] = [sum("succeeded"), sum("failed"), sum("cancelled")];
  if (succeeded + failed + cancelled === 0) return "No job ended in this time.";
  const busiest = minutes.reduce((best, minute) => (ended(minute) > ended(best) ? minute : best));
  const most = `Most in one minute: ${ended(busiest)}, at ${new Date(busiest.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}.`;
  return `${succeeded} succeeded, ${failed} failed, ${cancelled} cancelled. ${most}`;
}

function ended(minute: Throughput["minutes"][number]): number {
  return minute.succeeded + minute.failed + minute.cancelled;
}
