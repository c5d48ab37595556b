// SPDX-License-Identifier: Apache-2.0
// What one claim of one node takes, pure: projects take turns, in a project whose turn is oldest goes first, and only what
// has room now. What was passed over for room is named, and room that is kept for a job is lent to nobody else.

import { fit, type Place } from "../../protocol/placement-fit.ts";
import { type Hold, type Machine, roomNow, totalRoom } from "../../protocol/placement-pools.ts";
import type { Requirements } from "../../protocol/placement.ts";
import type { JobId, LaneId } from "../../std/ids.ts";

/** A job in the queue. */
export type Waiting = {
  readonly id: JobId;
  /** Order within a project: the least first. */
  readonly turnMs: number;
  /** How long it has been waiting for a node. */
  readonly waitedMs: number;
};

/** A lane that fits this machine by its totals, with its first jobs. */
export type WaitingLane = {
  readonly id: LaneId;
  readonly requirement: Requirements;
  /** "": jobs without a project. */
  readonly project: string;
  readonly jobs: readonly Waiting[];
};

export type ClaimInput = {
  readonly machine: Machine;
  readonly holds: readonly Hold[];
  readonly lanes: readonly WaitingLane[];
  readonly max: number;
  /** The project whose turn was last on this node; null: none yet. */
  readonly lastProject: string | null;
  /** The lane for whose next job this node keeps room. */
  readonly reserved: Pick<WaitingLane, "id" | "requirement"> | null;
  /** Lanes that an idle node would run faster, with the least rank that this one must leave to it. */
  readonly deferred: ReadonlyMap<LaneId, number>;
};

export type Take = {
  readonly laneId: LaneId;
  readonly place: Place;
  readonly waitedMs: number;
};

export type ClaimPlan = {
  readonly takes: readonly Take[];
  readonly lastProject: string | null;
  /** Jobs that were passed over for room while a later one took some. */
  readonly overtaken: readonly JobId[];
};

type Open = { readonly lane: WaitingLane; next: number };

export function planClaim(input: ClaimInput): ClaimPlan {
  const open: Open[] = input.lanes.map((lane) => ({ lane, next: 0 }));
  const holds: Hold[] = [...input.holds];
  const takes: Take[] = [];
  const passed = new Map<JobId, number>();
  const overtaken = new Set<JobId>();
  let { lastProject } = input;
  let kept = input.reserved;
  const take = (one: Open, place: Place): void => {
    const job = one.lane.jobs[one.next];
    if (job === undefined) return;
    one.next += 1;
    holds.push({ draws: place.draws, isSettled: false });
    takes.push({ laneId: one.lane.id, place, waitedMs: job.waitedMs });
    if (place.draws.length > 0) for (const [id, turnMs] of passed) if (turnMs <= job.turnMs) overtaken.add(id);
  };
  const reservedLane = open.find(({ lane }) => lane.id === kept?.id);
  if (reservedLane !== undefined) {
    const place = placeNow(input, holds, reservedLane.lane);
    if (place !== undefined && input.max > 0) {
      take(reservedLane, place);
      kept = null;
    }
  }
  // Room that is kept counts as taken, as if its job were there already.
  const keptHold = kept === null ? [] : holdOf(kept, input.machine);
  while (takes.length < input.max) {
    const chosen = nextTake(input, open, [...holds, ...keptHold], { lastProject, passed });
    if (chosen === undefined) break;
    lastProject = chosen.one.lane.project;
    take(chosen.one, chosen.place);
  }
  return { takes, lastProject, overtaken: [...overtaken] };
}

/** The next project in turn that has something to take, and its oldest that has room. */
function nextTake(
  input: ClaimInput,
  open: readonly Open[],
  holds: readonly Hold[],
  turn: { readonly lastProject: string | null; readonly passed: Map<JobId, number> },
): { readonly one: Open; readonly place: Place } | undefined {
  const waiting = open.filter(({ lane, next }) => next < lane.jobs.length).sort(byTurn);
  for (const project of inTurn(waiting, turn.lastProject)) {
    for (const one of waiting.filter(({ lane }) => lane.project === project)) {
      const place = placeNow(input, holds, one.lane);
      if (place !== undefined && place.rank < (input.deferred.get(one.lane.id) ?? Infinity)) return { one, place };
      const job = one.lane.jobs[one.next];
      // One that is left to a faster node is not passed over for room.
      if (place === undefined && job !== undefined) turn.passed.set(job.id, job.turnMs);
    }
  }
  return undefined;
}

/** Round and round by name, from the one after the last; where none was yet, whoever waits longest begins. */
function inTurn(waiting: readonly Open[], lastProject: string | null): readonly string[] {
  const projects = [...new Set(waiting.map(({ lane }) => lane.project))];
  if (lastProject === null) return projects;
  const sorted = projects.sort();
  return [...sorted.filter((project) => project > lastProject), ...sorted.filter((project) => project <= lastProject)];
}

function byTurn(a: Open, b: Open): number {
  const [one, other] = [a.lane.jobs[a.next], b.lane.jobs[b.next]];
  if (one === undefined || other === undefined) return 0;
  return one.turnMs - other.turnMs || (one.id < other.id ? -1 : 1);
}

function placeNow({ machine }: ClaimInput, holds: readonly Hold[], lane: WaitingLane): Place | undefined {
  const found = fit(lane.requirement, machine, roomNow(machine, holds));
  return found.kind === "fits" ? found.place : undefined;
}

/** Where the kept job would run if the machine were empty. Settled: what is available is not reduced for one that is not there. */
function holdOf(lane: Pick<WaitingLane, "requirement">, machine: Machine): readonly Hold[] {
  const found = fit(lane.requirement, machine, totalRoom(machine));
  return found.kind === "fits" ? [{ draws: found.place.draws, isSettled: true }] : [];
}
