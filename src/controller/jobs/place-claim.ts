// SPDX-License-Identifier: Apache-2.0
// One claim of one node, against what it has and holds. Rule: the node's row is locked, so its claims follow each other and no
// pool is lent twice. Nothing is remembered between claims but in the database, on its clock.

import { fit } from "../../protocol/placement-fit.ts";
import { HOST, type Machine, type MachineFacts, machineOf, roomNow } from "../../protocol/placement-pools.ts";
import { type Candidate, isFit, judge } from "../../protocol/placement-verdict.ts";
import type { Tx } from "../../db/pool.ts";
import type { JobId, LaneId } from "../../std/ids.ts";
import { listPolling } from "../nodes/candidate-store.ts";
import { type ClaimInput, type ClaimPlan, planClaim, type Take, type WaitingLane } from "./claim-plan.ts";
import { type Claim, claimJobs, waitingLanes } from "./claim-store.ts";
import { listHolds } from "./hold-store.ts";
import { noteOvertaken, readTurn } from "./reservation-store.ts";

/** For each step by which an idle node would be faster, a slower one leaves a job to it for so long. */
const STEP_ASIDE_MS = 250;
/** A node that asked for work within this time is taken to be idle. */
const POLLED_WITHIN_MS = 2_000;

export type Placed = {
  readonly ids: readonly JobId[];
  /** When a job that is left to a faster node may be taken here; null: none is. */
  readonly againInMs: number | null;
};

type Present = Candidate & { readonly facts: MachineFacts };

export async function placeClaim(tx: Tx, claim: Claim, node: Candidate, heartbeatMs: number): Promise<Placed> {
  const { facts } = node;
  if (facts === null) return { ids: [], againInMs: null };
  const machine = machineOf(facts);
  const present: Present = { ...node, facts };
  const [holds, { reserved, lastProject }, lanes] = await Promise.all([
    listHolds(tx, [claim.nodeId]),
    readTurn(tx, claim.nodeId),
    waitingLanes(tx, { node: present, ...reachOf(machine) }, claim.max),
    notePoll(tx, claim),
  ]);
  const input = { machine, holds, lanes, max: claim.max, lastProject, reserved, deferred: new Map() };
  const { plan, deferred, againInMs } = await leaveToFaster(tx, claim, input, heartbeatMs);
  const { ids, lastProject: last } = await takePlanned(tx, claim, { ...input, deferred }, plan);
  await Promise.all([
    noteOvertaken(tx, claim, ids.length === 0 ? [] : plan.overtaken),
    last === lastProject || ids.length === 0 ? undefined : writeLastProject(tx, claim, last),
  ]);
  return { ids, againInMs };
}

/** The most of each kind that any need could find here. */
function reachOf(machine: Machine): { hostBytes: number; gpuBytes: number } {
  const hostBytes = machine.pools.get(HOST)?.usableBytes ?? 0;
  const cards = [...machine.pools].filter(([id]) => id !== HOST).map(([, pool]) => pool.usableBytes);
  const shared = machine.gpus.some((gpu) => gpu.pool === HOST) ? hostBytes : 0;
  return {
    hostBytes,
    gpuBytes: Math.max(
      shared,
      cards.reduce((sum, bytes) => sum + bytes, 0),
    ),
  };
}

type Deferral = Pick<ClaimInput, "deferred"> & { readonly plan: ClaimPlan; readonly againInMs: number | null };

/** Plans; what an idle node would start faster is left to it for a moment, and the rest is planned again. */
async function leaveToFaster(tx: Tx, claim: Claim, input: ClaimInput, heartbeatMs: number): Promise<Deferral> {
  const plan = planClaim(input);
  const deferred = new Map<LaneId, number>();
  if (!plan.takes.some(isEarly)) return { plan, deferred, againInMs: null };
  const idle = await idleNodes(tx, claim, heartbeatMs);
  let againInMs: number | null = null;
  let left: ClaimPlan = plan;
  // Each turn defers at least one lane more, or ends.
  for (;;) {
    const early = left.takes.find((take) => isEarly(take) && hasFaster(idle, input.lanes, take));
    if (early === undefined) return { plan: left, deferred, againInMs };
    deferred.set(early.laneId, early.place.rank);
    const waitMs = STEP_ASIDE_MS * early.place.rank - early.waitedMs;
    againInMs = Math.min(againInMs ?? waitMs, waitMs);
    left = planClaim({ ...input, deferred });
  }
}

function isEarly({ place, waitedMs }: Take): boolean {
  return waitedMs < STEP_ASIDE_MS * place.rank;
}

/** The rank of the path on which this node would start a job of the lane now; infinite where it would not. */
type RankOf = (lane: WaitingLane) => number;

async function idleNodes(tx: Tx, claim: Claim, heartbeatMs: number): Promise<readonly RankOf[]> {
  const asked = { exceptId: claim.nodeId, withinMs: POLLED_WITHIN_MS };
  const polling = (await listPolling(tx, heartbeatMs, asked)).filter((node) => node.refuses === null && node.isOnline);
  const holds = await listHolds(
    tx,
    polling.map((node) => node.nodeId),
  );
  return polling.flatMap((node) => {
    if (node.facts === null) return [];
    const machine = machineOf(node.facts);
    const room = roomNow(
      machine,
      holds.filter((hold) => hold.nodeId === node.nodeId),
    );
    const rankOf: RankOf = ({ requirement }) => {
      const found = isFit(judge(requirement, node)) ? fit(requirement, machine, room) : undefined;
      return found?.kind === "fits" ? found.place.rank : Number.POSITIVE_INFINITY;
    };
    return [rankOf];
  });
}

function hasFaster(idle: readonly RankOf[], lanes: readonly WaitingLane[], take: Take): boolean {
  const lane = lanes.find(({ id }) => id === take.laneId);
  return lane !== undefined && idle.some((rankOf) => rankOf(lane) < take.place.rank);
}

/** Others may be faster at the same jobs: what is missing then is looked for in the lanes that did not run out. */
async function takePlanned(
  tx: Tx,
  claim: Claim,
  input: ClaimInput,
  first: ClaimPlan,
): Promise<{ readonly ids: readonly JobId[]; readonly lastProject: string | null }> {
  const ids: JobId[] = [];
  let plan = first;
  let { holds, lanes } = input;
  for (;;) {
    const rows = await claimJobs(tx, claim, plan.takes);
    ids.push(...rows.map((row) => row.id));
    if (rows.length === plan.takes.length) return { ids, lastProject: plan.lastProject };
    const got = Map.groupBy(rows, (row) => row.lane_id);
    const dry = new Set(takenOf(plan, (laneId, count) => (got.get(laneId)?.length ?? 0) < count));
    holds = [...holds, ...plan.takes.map(({ place }) => ({ draws: place.draws, isSettled: false }))];
    lanes = lanes.filter((lane) => !dry.has(lane.id));
    plan = planClaim({ ...input, holds, lanes, max: claim.max - ids.length });
  }
}

function takenOf(plan: ClaimPlan, isWanted: (laneId: LaneId, count: number) => boolean): readonly LaneId[] {
  const groups = Map.groupBy(plan.takes, (take) => take.laneId);
  return [...groups].filter(([laneId, takes]) => isWanted(laneId, takes.length)).map(([laneId]) => laneId);
}

async function writeLastProject(tx: Tx, { nodeId }: Claim, project: string | null): Promise<void> {
  await tx.query("update app.node set last_project = $2 where id = $1", [nodeId, project]);
}

/** Often enough for whoever asks whether this node is idle, and no more often than that. */
async function notePoll(tx: Tx, { nodeId }: Claim): Promise<void> {
  await tx.query(
    `update app.node_heartbeat set polled_at = now()
      where node_id = $1 and (polled_at is null or polled_at < now() - ${POLLED_WITHIN_MS / 4} * interval '1 millisecond')`,
    [nodeId],
  );
}
