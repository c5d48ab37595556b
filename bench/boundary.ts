// SPDX-License-Identifier: Apache-2.0
// Durable starts: the boundary over its slots, beside the raw limit (the same bytes by the same file protocol in a bare loop) and
// SQLite with synchronous=FULL, in interleaved rounds of one run. Rule: every peer makes the same record last before it goes on.

import fs from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { AttemptStart } from "../src/boundary/attempts.ts";
import { Boundary, BOUNDARY_TENANT, storedIdentity } from "../src/boundary/boundary.ts";
import { Locker, openSlot } from "../src/locker/locker.ts";
import { systemRandom } from "../src/std/random.ts";

export type Measure = {
  readonly measure: string;
  readonly unit: string;
  readonly us: number;
  readonly peers: { readonly [name: string]: number };
  readonly ratio: number;
  readonly goal: string;
  readonly met: boolean;
};

export type BenchOptions = { readonly directory: string; readonly rounds: number; readonly slots: number };

const TOGETHER = 32;
/** Starts in each round of each peer, one after the other. */
const IN_A_ROW = 20;

const identity = storedIdentity({
  bootId: "6b1a8e9c-0f3d-4c55-9d7e-2a1b3c4d5e6f",
  pid: 4242,
  startTicks: "123456789",
  pidfdInode: "987654",
});

function startOf(number: number): AttemptStart {
  const jobId = `job_${String(number).padStart(26, "0")}`;
  return { jobId, epoch: "1", launchId: `attempt-${jobId}-1`, identity };
}

type Peer = {
  /** Makes one record last. */
  readonly one: (number: number) => Promise<void> | void;
  /** Makes 32 last that come together. */
  readonly many: (from: number) => Promise<void> | void;
  /** Back to a small record, unmeasured. */
  readonly clear: (from: number) => Promise<void> | void;
};

async function boundaryPeer(places: readonly string[]): Promise<Peer> {
  const slots = places.map((place) => openSlot(place));
  const boundary = await Boundary.open(
    new Locker({ slots, fingerprint: new Uint8Array(32), random: systemRandom }).tenant(BOUNDARY_TENANT),
  );
  const start = async (number: number): Promise<void> => {
    const { kind } = await boundary.startAttempt(startOf(number));
    if (kind !== "admitted") throw new Error(`start ${number} was not admitted: ${kind}`);
  };
  return {
    one: start,
    many: async (from) => void (await Promise.all(Array.from({ length: TOGETHER }, (_, index) => start(from + index)))),
    clear: async (from) => {
      const refs = boundary.record.attempts.filter(({ jobId }) => Number(jobId.slice(4)) >= from);
      await Promise.all(refs.map(({ jobId, epoch }) => boundary.closeAttempt({ jobId, epoch: String(epoch) })));
    },
  };
}

/** What the locker does to the disk and nothing else, by the same calls: the asynchronous ones of node:fs. */
function rawPeer(places: readonly string[], sample: string): Peer {
  const write = async (bytes: Uint8Array): Promise<void> => {
    for (const place of places) {
      const file = await fs.promises.open(path.join(place, "raw.new"), "w", 0o600);
      await file.writeFile(bytes);
      await file.sync();
      await file.close();
      await fs.promises.rename(path.join(place, "raw.new"), path.join(place, "raw"));
      const handle = await fs.promises.open(place, "r");
      await handle.sync();
      await handle.close();
    }
  };
  // As many bytes as the boundary has just written.
  const bytes = (): Uint8Array => fs.readFileSync(sample);
  return { one: () => write(bytes()), many: () => write(bytes()), clear: () => {} };
}

function sqlitePeer(place: string): Peer {
  const database = new DatabaseSync(path.join(place, "attempts.sqlite"));
  database.exec(
    "pragma journal_mode=wal; pragma synchronous=full; create table attempt (id text primary key, body text) strict",
  );
  const insert = database.prepare("insert into attempt values (?, ?)");
  const body = JSON.stringify({ ...startOf(0), identity: { ...identity, startTicks: String(identity.startTicks) } });
  return {
    one: (number) => void insert.run(`one ${number}`, body),
    many: (from) => {
      database.exec("begin immediate");
      for (let index = 0; index < TOGETHER; index++) insert.run(`many ${from + index}`, body);
      database.exec("commit");
    },
    clear: () => database.exec("delete from attempt"),
  };
}

type Times = { readonly one: number[]; readonly many: number[] };

async function timed(times: number[], work: () => Promise<void> | void): Promise<void> {
  const began = performance.now();
  await work();
  times.push((performance.now() - began) * 1000);
}

function quantile(times: readonly number[], part: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

async function measure({ directory, rounds, slots }: BenchOptions): Promise<{ readonly [name: string]: Times }> {
  const places = Array.from({ length: slots }, (_, index) => path.join(directory, `slot-${index}`));
  const boundary = await boundaryPeer(places);
  const peers: { readonly [name: string]: Peer } = {
    boundary,
    raw: rawPeer(places, path.join(places[0] ?? "", BOUNDARY_TENANT)),
    sqlite: sqlitePeer(directory),
  };
  const times: { [name: string]: Times } = {};
  for (const name of Object.keys(peers)) times[name] = { one: [], many: [] };
  let next = 0;
  // The first round warms up and does not count.
  for (let round = 0; round <= rounds; round++) {
    const first = next;
    for (const [name, peer] of Object.entries(peers)) {
      const own = round === 0 ? { one: [], many: [] } : (times[name] ?? { one: [], many: [] });
      for (let index = 0; index < IN_A_ROW; index++) await timed(own.one, () => peer.one(next++));
    }
    for (const [name, peer] of Object.entries(peers)) {
      const own = round === 0 ? { one: [], many: [] } : (times[name] ?? { one: [], many: [] });
      await timed(own.many, () => peer.many(next));
      next += TOGETHER;
    }
    for (const peer of Object.values(peers)) await peer.clear(first);
  }
  return times;
}

const rounded = (number: number): number => Math.round(number * 100) / 100;

export async function benchBoundary(options: BenchOptions): Promise<readonly Measure[]> {
  const times = await measure(options);
  const at = (name: string, kind: keyof Times, part: number): number => quantile(times[name]?.[kind] ?? [], part);
  const line = (name: string, kind: keyof Times, part: number): Measure => {
    const [own, raw, sqlite] = [at("boundary", kind, part), at("raw", kind, part), at("sqlite", kind, part)];
    const ratio = own / raw;
    const isGoal = kind === "one" && part === 0.5;
    return {
      measure: name,
      unit: "microseconds",
      us: Math.round(own),
      peers: { raw: Math.round(raw), sqlite: Math.round(sqlite) },
      ratio: rounded(ratio),
      goal: isGoal ? "≤ 1.3 × raw" : "",
      met: !isGoal || ratio <= 1.3,
    };
  };
  const [one, together] = [at("boundary", "one", 0.5), at("boundary", "many", 0.5) / TOGETHER];
  const gain = one / together;
  return [
    line(`one start, ${options.slots} slots, p50`, "one", 0.5),
    line(`one start, ${options.slots} slots, p99`, "one", 0.99),
    line(`${TOGETHER} starts together, ${options.slots} slots, p50`, "many", 0.5),
    line(`${TOGETHER} starts together, ${options.slots} slots, p99`, "many", 0.99),
    {
      measure: `durable starts, ${options.slots} slots, ${TOGETHER} together`,
      unit: "microseconds",
      us: Math.round(together),
      peers: {
        "starts per second": Math.round(1e6 / together),
        "one by one per second": Math.round(1e6 / one),
        "sqlite one by one per second": Math.round(1e6 / at("sqlite", "one", 0.5)),
        "sqlite 32 in a transaction per second": Math.round((TOGETHER * 1e6) / at("sqlite", "many", 0.5)),
      },
      ratio: rounded(gain),
      goal: "≥ 5 × one by one",
      met: gain >= 5,
    },
  ];
}
