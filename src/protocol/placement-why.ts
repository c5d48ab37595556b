// SPDX-License-Identifier: Apache-2.0
// Why a job is where it is, pure: the verdict of each node, which could take it now, who holds what it waits for, and the one
// answer. Rule: the answer is blocked or waiting, never something between.

import type { JobState } from "./job.ts";
import type { JobWhy, WhyHolder, WhyNode } from "./placement-schema.ts";
import { fit, missText } from "./placement-fit.ts";
import { type Hold, HOST, type Machine, roomNow } from "./placement-pools.ts";
import { answerFor, type Candidate, canServe, isFit, judge, whyAway } from "./placement-verdict.ts";
import { gibibytes, type Requirements } from "./placement.ts";

export type WhyHold = Hold & { readonly jobId: string; readonly nodeId: string; readonly state: JobState };

export type WhyInput = {
  readonly job: {
    readonly id: string;
    readonly state: JobState;
    readonly requires: Requirements;
    readonly nodeName: string | null;
    readonly reason: string | null;
    readonly notBefore: string | null;
  };
  readonly nodes: readonly Candidate[];
  readonly holds: readonly WhyHold[];
  readonly position: { readonly jobs: number; readonly isLeast: boolean } | null;
  /** Node id → the job that it keeps room for. */
  readonly reservations: ReadonlyMap<string, string>;
};

const HOLDERS_MAX = 20;

export function whyOf(input: WhyInput): JobWhy {
  const { job, position, reservations } = input;
  const nodes = input.nodes.filter((node) => node.status !== "retired").map((node) => whyNode(input, node));
  const reserving = input.nodes.find((node) => reservations.get(node.nodeId) === job.id);
  const holders = holdersOf(input, nodes);
  const isWaiting = job.state === "queued";
  const shared = {
    jobId: job.id,
    state: job.state,
    position: isWaiting ? (position?.jobs ?? null) : null,
    positionIsLeast: isWaiting && position?.isLeast === true,
    reservedOn: isWaiting && reserving !== undefined ? { nodeId: reserving.nodeId, name: reserving.name } : null,
    nodes,
    holders: isWaiting ? holders : [],
  };
  return { ...shared, ...answerOf(input, shared) };
}

type Told = Pick<JobWhy, "position" | "positionIsLeast" | "reservedOn" | "nodes" | "holders">;

function answerOf({ job, nodes }: WhyInput, told: Told): Pick<JobWhy, "answer" | "text"> {
  switch (job.state) {
    case "scheduled":
      return { answer: "scheduled", text: `waits for its time${job.notBefore === null ? "" : `: ${job.notBefore}`}` };
    case "leased":
    case "running":
      return { answer: "held", text: `${job.state} on ${job.nodeName ?? "a node"}` };
    case "queued": {
      const answer = answerFor(job.requires, nodes);
      if (answer.kind !== "fits") return { answer: answer.kind, text: `blocked: ${answer.reason}` };
      return { answer: "waiting", text: `waiting: ${waitingText(told)}` };
    }
    default:
      return { answer: "ended", text: `ended: ${job.state}${job.reason === null ? "" : `, ${job.reason}`}` };
  }
}

function waitingText({ nodes, position, positionIsLeast, holders, reservedOn }: Told): string {
  const fitting = nodes.filter(({ path }) => path !== null);
  const ready = fitting.filter((node) => node.startsNow);
  const ahead = `${positionIsLeast ? "at least " : ""}${position ?? 0} ${position === 1 ? "job is" : "jobs are"} before it`;
  const kept = reservedOn === null ? "" : `; ${reservedOn.name} keeps room for it`;
  if (ready.length > 0) {
    const names = ready.slice(0, 3).map((node) => node.name);
    return `fits, and ${names.join(", ")} can take it with its next free slot; ${ahead}${kept}`;
  }
  const [first] = holders;
  const held =
    first === undefined
      ? "others use the memory"
      : `${first.nodeName} is held by ${first.jobId}${more(holders.length)}`;
  return `fits, busy: ${held}; ${ahead}${kept}`;
}

function more(holders: number): string {
  return holders > 1 ? ` and ${holders - 1} more` : "";
}

function whyNode({ job, holds, reservations }: WhyInput, node: Candidate): WhyNode {
  const verdict = judge(job.requires, node);
  const shared = {
    nodeId: node.nodeId,
    name: node.name,
    status: node.status,
    online: node.isOnline,
    lastHeartbeatAt: node.lastHeartbeatAt,
    verdict: verdict.kind,
  };
  if (!isFit(verdict)) return { ...shared, path: null, startsNow: false, text: verdict.reason };
  const { path } = verdict.place;
  if (!canServe(node)) return { ...shared, path, startsNow: false, text: whyAway(node) };
  const held = holds.filter((hold) => hold.nodeId === node.nodeId);
  const now = fit(job.requires, verdict.machine, roomNow(verdict.machine, held));
  const keptFor = reservations.get(node.nodeId);
  if (keptFor !== undefined && keptFor !== job.id)
    return { ...shared, path, startsNow: false, text: `keeps room for ${keptFor}, which was passed over too often` };
  if (now.kind === "fits") {
    const slower = now.misses.map((miss) => `${miss.path}: ${missText(miss)}`).join("; ");
    return { ...shared, path: now.place.path, startsNow: true, text: slower };
  }
  return { ...shared, path, startsNow: false, text: busyText(verdict.machine, held, now.misses.map(missText)) };
}

/** Now too little is free: by leases, by strangers, or both. */
function busyText(machine: Machine, held: readonly WhyHold[], misses: readonly string[]): string {
  const byLeases = held.flatMap((hold) => hold.draws).reduce((sum, draw) => sum + draw.bytes, 0);
  const { usableBytes = 0, availableBytes = null } = machine.pools.get(HOST) ?? {};
  const used = availableBytes === null ? 0 : usableBytes - availableBytes;
  const strangers = held.length === 0 && used > 0 ? `, others use ${gibibytes(used)} of its memory` : "";
  return `now: ${misses.join("; ")}; leases hold ${gibibytes(byLeases)}${strangers}`;
}

/** Live leases with memory on the nodes that fit; where the job needs none, all of them: their slots are what it waits for. */
function holdersOf({ nodes, holds }: WhyInput, verdicts: readonly WhyNode[]): WhyHolder[] {
  const fitting = new Set(verdicts.filter(({ path }) => path !== null).map(({ nodeId }) => nodeId));
  const names = new Map(nodes.map((node) => [node.nodeId, node.name]));
  return holds
    .filter((hold) => fitting.has(hold.nodeId))
    .map(({ jobId, nodeId, state, draws }) => ({
      jobId,
      nodeId,
      nodeName: names.get(nodeId) ?? nodeId,
      state,
      bytes: draws.reduce((sum, draw) => sum + draw.bytes, 0),
    }))
    .sort((a, b) => b.bytes - a.bytes || (a.jobId < b.jobId ? -1 : 1))
    .slice(0, HOLDERS_MAX);
}
