// SPDX-License-Identifier: Apache-2.0
// The gateway beside no proxy at all and HAProxy in TCP mode, in interleaved rounds of one run. Rule: load and upstream are
// processes of their own and the same ones for every peer; each number is the median of its rounds.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import { gatewayControl } from "../src/gateway/control-client.ts";
import type { Upstream } from "../src/gateway/table.ts";
import { identityOf } from "../src/std/process.ts";
import type { Measure } from "./boundary.ts";
import type { LoadAsked, LoadSaid } from "./gateway-load-main.ts";

export type GatewayBenchOptions = { readonly directory: string; readonly rounds: number };

const fileOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const OPEN = 2000;

type Peer = { readonly name: string; readonly port: number; readonly pid: number | undefined };
type Load = (asked: Partial<LoadAsked> & Pick<LoadAsked, "kind" | "port">) => Promise<LoadSaid>;
/** Numbers of one round. cpu: seconds of the peer's process. */
type Round = Record<string, number>;

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function accepts(port: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (performance.now() < deadline) {
    const socket = net.connect(port, "127.0.0.1");
    const isThere = await new Promise((resolve) => {
      socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    });
    socket.destroy();
    if (isThere === true) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`nothing accepts on port ${port}`);
}

function haproxy(): string | undefined {
  try {
    return execFileSync("sh", ["-c", "command -v haproxy"]).toString().trim();
  } catch {
    return undefined;
  }
}

function haproxyConfig(port: number, upstream: number): string {
  return [
    "global",
    "  maxconn 8000",
    "defaults",
    "  mode tcp",
    "  timeout connect 5s",
    "  timeout client 1h",
    "  timeout server 1h",
    "frontend f",
    `  bind 127.0.0.1:${port}`,
    "  default_backend b",
    "backend b",
    `  server s 127.0.0.1:${upstream}`,
    "",
  ].join("\n");
}

/** User and system time of all threads, in seconds. */
function cpuOf(pid: number | undefined): number {
  if (pid === undefined) return 0;
  let ns = 0;
  for (const thread of fs.readdirSync(`/proc/${pid}/task`))
    ns += Number(fs.readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0]);
  return ns / 1e9;
}

function residentOf(pid: number | undefined): number {
  if (pid === undefined) return 0;
  return Number(/^VmRSS:\s*(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]) * 1024;
}

function openLoad(child: ChildProcess): Load {
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("the load has no pipes");
  const lines = readline.createInterface({ input: stdout });
  return async (asked) => {
    const answer = once(lines, "line");
    stdin.write(`${JSON.stringify({ ms: 1000, count: 1, ...asked })}\n`);
    const [line] = (await answer) as [string];
    return JSON.parse(line) as LoadSaid;
  };
}

/** As an agent runs it: with a table that names the process of the model, so that each connection is proved. */
async function startGateway(directory: string, upstream: Upstream, started: ChildProcess[]): Promise<Peer> {
  const control = path.join(directory, "control.sock");
  const child = spawn(process.execPath, [fileOf("../src/bin/gateway-main.ts"), "--control", control], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, HOLDFAST_LOG_LEVEL: "warn" },
  });
  started.push(child);
  const port = await freePort();
  const front = { listen: { host: "127.0.0.1", port }, target: { kind: "serving", upstream } } as const;
  for (let tries = 0; ; tries++) {
    try {
      await gatewayControl(control).set({ fronts: [front] }, 1);
      return { name: "gateway", port, pid: child.pid };
    } catch (error) {
      if (tries > 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function peersOf(directory: string, upstream: Upstream, started: ChildProcess[]): Promise<readonly Peer[]> {
  const upstreamPort = upstream.address.port;
  const peers: Peer[] = [{ name: "direct", port: upstreamPort, pid: undefined }];
  peers.push(await startGateway(directory, upstream, started));
  const program = haproxy();
  if (program === undefined)
    process.stderr.write("HAProxy is missing (apt-get install haproxy): measured without it\n");
  else {
    const port = await freePort();
    const config = path.join(directory, "haproxy.cfg");
    fs.writeFileSync(config, haproxyConfig(port, upstreamPort));
    const child = spawn(program, ["-db", "-f", config], { stdio: ["ignore", "ignore", "inherit"] });
    started.push(child);
    peers.push({ name: "haproxy", port, pid: child.pid });
  }
  for (const { port } of peers) await accepts(port);
  return peers;
}

async function memoryOf(load: Load, { port, pid }: Peer): Promise<Round> {
  const before = residentOf(pid);
  await load({ kind: "open", port, count: OPEN });
  const bytes = (residentOf(pid) - before) / OPEN;
  await load({ kind: "close", port });
  return { memory: bytes };
}

async function roundOf(load: Load, { port, pid }: Peer): Promise<Round> {
  const cpu = async (asked: Parameters<Load>[0]): Promise<LoadSaid & { readonly cpu: number }> => {
    const before = cpuOf(pid);
    const said = await load(asked);
    return { ...said, cpu: cpuOf(pid) - before };
  };
  const requests = await cpu({ kind: "requests", port, ms: 1500, count: 32 });
  const latency = await cpu({ kind: "latency", port, ms: 700, count: 1 });
  const stream = await cpu({ kind: "stream", port, ms: 1500, count: 50 });
  const bulk = await cpu({ kind: "bulk", port, ms: 1500 });
  const connections = await cpu({ kind: "connections", port, ms: 700, count: 8 });
  return {
    requests: (requests.done * 1000) / requests.ms,
    requestCpu: (requests.cpu * 1e6) / requests.done,
    p50: latency.p50,
    p99: latency.p99,
    streamP50: stream.p50,
    streamP99: stream.p99,
    bulk: (bulk.done * 1000) / bulk.ms / 1e6,
    bulkCpu: (bulk.cpu * 1e9) / bulk.done,
    connections: (connections.done * 1000) / connections.ms,
  };
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

const rounded = (value: number): number => Number(value.toPrecision(3));

type Row = {
  readonly measure: string;
  readonly unit: string;
  readonly key: string;
  /** Less the same of no proxy at all. */
  readonly isAdded?: boolean;
  readonly least?: number;
  readonly most?: number;
};

const rows: readonly Row[] = [
  { measure: "requests at 32 connections", unit: "per second", key: "requests", least: 0.65 },
  { measure: "CPU of the proxy for a request", unit: "microseconds", key: "requestCpu" },
  { measure: "added latency of a small request, p50", unit: "microseconds", key: "p50", isAdded: true },
  { measure: "added latency of a small request, p99", unit: "microseconds", key: "p99", isAdded: true },
  { measure: "event of 50 streams, 100 a second each: delay, p50", unit: "microseconds", key: "streamP50" },
  { measure: "event of 50 streams, 100 a second each: delay, p99", unit: "microseconds", key: "streamP99", most: 1.8 },
  { measure: "bulk of one connection", unit: "MB per second", key: "bulk", least: 0.95 },
  { measure: "CPU of the proxy for a GB", unit: "seconds", key: "bulkCpu" },
  { measure: "new connections, 8 at once", unit: "per second", key: "connections" },
  { measure: `memory of an idle connection, of ${OPEN}`, unit: "bytes", key: "memory" },
];

function measureOf(row: Row, medians: ReadonlyMap<string, Round>): Measure {
  const of = (name: string): number => {
    const value = medians.get(name)?.[row.key] ?? Number.NaN;
    return row.isAdded === true ? value - (medians.get("direct")?.[row.key] ?? Number.NaN) : value;
  };
  const peers = [...medians.keys()].filter((name) => name !== "gateway");
  const ratio = of("gateway") / of("haproxy");
  const goal =
    row.least === undefined ? (row.most === undefined ? "" : `≤ ${row.most} × HAProxy`) : `≥ ${row.least} × HAProxy`;
  return {
    measure: row.measure,
    unit: row.unit,
    us: rounded(of("gateway")),
    peers: Object.fromEntries(peers.map((name) => [name, rounded(of(name))])),
    ratio: rounded(ratio),
    goal,
    // Without HAProxy there is nothing to compare with.
    met: Number.isNaN(ratio) || (ratio >= (row.least ?? 0) && ratio <= (row.most ?? Number.POSITIVE_INFINITY)),
  };
}

export async function benchGateway({ directory, rounds }: GatewayBenchOptions): Promise<readonly Measure[]> {
  const started: ChildProcess[] = [];
  try {
    const upstream = spawn(process.execPath, [fileOf("gateway-upstream-main.ts")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    started.push(upstream);
    const [said] = (await once(upstream.stdout, "data")) as [Buffer];
    const child = spawn(process.execPath, [fileOf("gateway-load-main.ts")], { stdio: ["pipe", "pipe", "inherit"] });
    started.push(child);
    const load = openLoad(child);
    const identity = identityOf(upstream.pid ?? 0);
    if (identity === undefined) throw new Error("the upstream ended at once");
    const address = { host: "127.0.0.1", port: Number(String(said)) };
    const peers = await peersOf(directory, { address, identity, model: "bench" }, started);
    const seen = new Map<string, Round[]>(peers.map(({ name }) => [name, []]));
    for (const peer of peers) seen.get(peer.name)?.push(await memoryOf(load, peer));
    // The first round warms up and does not count.
    for (let round = 0; round <= rounds; round++)
      for (const peer of peers) {
        const numbers = await roundOf(load, peer);
        if (round > 0) seen.get(peer.name)?.push(numbers);
      }
    const medians = new Map<string, Round>();
    for (const [name, all] of seen) {
      const numbers = (key: string): readonly number[] => all.flatMap((round) => round[key] ?? []);
      medians.set(name, Object.fromEntries(rows.map(({ key }) => [key, median(numbers(key))])));
    }
    return rows.map((row) => measureOf(row, medians));
  } finally {
    for (const child of started) {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    }
  }
}
