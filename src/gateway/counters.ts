// SPDX-License-Identifier: Apache-2.0
// What a gateway counts, for each front, and how Prometheus reads it (text format 0.0.4). Rule: counters only grow, also when a
// front gets another model; they begin at 0 with the process.

/** Why a connection was not served. A closed list: an operator alerts on it. */
export const REFUSALS = [
  "refusing",
  "unproved",
  "holding-full",
  "held-too-long",
  "connect-failed",
  "stopping",
] as const;
export type Refusal = (typeof REFUSALS)[number];

const CONNECT_MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000] as const;

export type CountersSeen = {
  readonly open: number;
  readonly total: number;
  readonly held: number;
  readonly heldTotal: number;
  readonly bytesFromClients: number;
  readonly bytesFromUpstream: number;
  readonly refused: Readonly<Record<Refusal, number>>;
  /** Connections that were closed idle, and cut at the end of a drain. */
  readonly closedIdle: number;
  readonly cut: number;
};

export class Counters {
  open = 0;
  total = 0;
  held = 0;
  heldTotal = 0;
  bytesFromClients = 0;
  bytesFromUpstream = 0;
  closedIdle = 0;
  cut = 0;
  readonly refused: Record<Refusal, number> = {
    refusing: 0,
    unproved: 0,
    "holding-full": 0,
    "held-too-long": 0,
    "connect-failed": 0,
    stopping: 0,
  };
  readonly #connects = CONNECT_MS.map(() => 0);
  #connectCount = 0;
  #connectSumMs = 0;

  countConnect(tookMs: number): void {
    this.#connectCount++;
    this.#connectSumMs += tookMs;
    const bucket = CONNECT_MS.findIndex((most) => tookMs <= most);
    if (bucket >= 0) this.#connects[bucket] = (this.#connects[bucket] ?? 0) + 1;
  }

  seen(): CountersSeen {
    const { open, total, held, heldTotal, bytesFromClients, bytesFromUpstream, closedIdle, cut } = this;
    const refused = { ...this.refused };
    return { open, total, held, heldTotal, bytesFromClients, bytesFromUpstream, refused, closedIdle, cut };
  }

  /** [seconds, connections at most as slow], cumulative. */
  connectTimes(): {
    readonly buckets: readonly (readonly [number, number])[];
    readonly sum: number;
    readonly count: number;
  } {
    let below = 0;
    const buckets = CONNECT_MS.map((most, index) => [most / 1000, (below += this.#connects[index] ?? 0)] as const);
    return { buckets, sum: this.#connectSumMs / 1000, count: this.#connectCount };
  }
}

export type FrontCounters = {
  readonly listen: string;
  readonly counters: Counters;
  readonly isProved: boolean;
  readonly waitingBytes: number;
};

type Sample = readonly [labels: string, value: number];

export function prometheusText(fronts: readonly FrontCounters[]): string {
  const lines: string[] = [];
  const metric = (name: string, type: string, help: string, of: (front: FrontCounters) => readonly Sample[]): void => {
    lines.push(`# HELP holdfast_gateway_${name} ${help}`, `# TYPE holdfast_gateway_${name} ${type}`);
    for (const front of fronts)
      for (const [labels, value] of of(front))
        lines.push(
          `holdfast_gateway_${name}${labels.replace("{", `{listen=${JSON.stringify(front.listen)},`).replace(",}", "}")} ${value}`,
        );
  };
  const one =
    (of: (counters: Counters) => number) =>
    (front: FrontCounters): readonly Sample[] => [["{}", of(front.counters)]];
  metric(
    "connections_open",
    "gauge",
    "Client connections that are open, held ones included.",
    one(({ open }) => open),
  );
  metric(
    "connections_total",
    "counter",
    "Client connections that were accepted.",
    one(({ total }) => total),
  );
  metric(
    "connections_held",
    "gauge",
    "Client connections that wait for a model.",
    one(({ held }) => held),
  );
  metric(
    "held_total",
    "counter",
    "Client connections that had to wait for a model.",
    one(({ heldTotal }) => heldTotal),
  );
  metric(
    "waiting_bytes",
    "gauge",
    "Bytes that were read and not yet written, of all connections.",
    ({ waitingBytes }) => [["{}", waitingBytes]],
  );
  metric("bytes_total", "counter", "Bytes that passed, by where they came from.", ({ counters }) => [
    ['{from="client"}', counters.bytesFromClients],
    ['{from="upstream"}', counters.bytesFromUpstream],
  ]);
  metric("refused_total", "counter", "Client connections that were refused, by reason.", ({ counters }) =>
    REFUSALS.map((reason) => [`{reason="${reason}"}`, counters.refused[reason]] as const),
  );
  metric(
    "closed_idle_total",
    "counter",
    "Idle connections that were closed when the model changed.",
    one(({ closedIdle }) => closedIdle),
  );
  metric(
    "cut_total",
    "counter",
    "Connections that were reset because a drain ended.",
    one(({ cut }) => cut),
  );
  metric("proved", "gauge", "1 while the upstream is proved to be the model that was asked for.", ({ isProved }) => [
    ["{}", isProved ? 1 : 0],
  ]);
  metric("upstream_connect_seconds", "histogram", "Time until the upstream took a connection.", () => []);
  for (const { listen, counters } of fronts) lines.push(...histogram(JSON.stringify(listen), counters));
  return `${lines.join("\n")}\n`;
}

function histogram(listen: string, counters: Counters): readonly string[] {
  const { buckets, sum, count } = counters.connectTimes();
  const name = "holdfast_gateway_upstream_connect_seconds";
  return [
    ...buckets.map(([most, below]) => `${name}_bucket{listen=${listen},le="${most}"} ${below}`),
    `${name}_bucket{listen=${listen},le="+Inf"} ${count}`,
    `${name}_sum{listen=${listen}} ${sum}`,
    `${name}_count{listen=${listen}} ${count}`,
  ];
}
