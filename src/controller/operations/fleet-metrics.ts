// SPDX-License-Identifier: Apache-2.0
// The fleet of one organisation as gauges, made for each scrape: nothing of it stays in this controller's registry, where
// another organisation's scrape would find it. Format: Prometheus text exposition 0.0.4.

import type { FleetNumbers } from "./operation-store.ts";

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

export function fleetText(numbers: FleetNumbers): string {
  const by = (label: string, values: Readonly<Record<string, number>>): Sample[] =>
    Object.entries(values).map(([name, value]) => [{ [label]: name }, value]);
  return [
    gauge("holdfast_jobs", "Jobs by state", by("state", numbers.jobs)),
    gauge("holdfast_jobs_blocked", "Queued jobs that no node can run", [[{}, numbers.blockedJobs]]),
    gauge("holdfast_oldest_queued_job_age_seconds", "Age of the oldest queued job", [
      [{}, numbers.oldestQueuedSeconds],
    ]),
    gauge("holdfast_oldest_expired_lease_seconds", "How long the oldest lease is over without being swept", [
      [{}, numbers.oldestExpiredLeaseSeconds],
    ]),
    gauge("holdfast_nodes", "Nodes in service", by("state", numbers.nodes)),
    gauge("holdfast_slots", "Slots of nodes that are online and active", by("state", numbers.slots)),
  ].join("");
}

function gauge(name: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => {
    const text = Object.entries(labels)
      .map(([label, content]) => `${label}="${content}"`)
      .join(",");
    return `${name}${text === "" ? "" : `{${text}}`} ${value}\n`;
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join("")}`;
}
