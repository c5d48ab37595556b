// SPDX-License-Identifier: Apache-2.0
// What placement says of one node for one job, and of all nodes for a lane, pure. Rule: three answers that are never mixed.
// Totals decide whether a job is blocked; what is available, and live leases, decide only whether it can start now.

import { fit, missText, type Miss, type Place } from "./placement-fit.ts";
import { type Machine, type MachineFacts, machineOf, totalRoom } from "./placement-pools.ts";
import { gibibytes, type Requirements } from "./placement.ts";
import type { SceneReport } from "./scene-schema.ts";

/** What a node's last report says of its scenes: only what is verified. */
export type Served = {
  /** The active scene with every model of it healthy; null: none, or not certain now. */
  readonly scene: string | null;
  /** Models whose very process told their exact marker. */
  readonly models: readonly string[];
  /** What is active by its word, for people. */
  readonly active: string | null;
};

export type Candidate = {
  readonly nodeId: string;
  readonly name: string;
  readonly status: "active" | "draining" | "retired";
  readonly isOnline: boolean;
  readonly lastHeartbeatAt: string | null;
  /** Null: it has not told yet what it has. */
  readonly facts: MachineFacts | null;
  readonly served: Served;
  /** Why it refuses every job at present; null when it does not. */
  readonly refuses: string | null;
};

export const verdictKinds = [
  "fits-fast",
  "fits-split",
  "fits-host",
  "too-small",
  "gpu-missing",
  "gpu-unusable",
  "other-arch",
  "other-node",
  "scene-not-served",
  "model-not-served",
  "facts-unknown",
] as const;
export type VerdictKind = (typeof verdictKinds)[number];

export type Verdict =
  /** slower: why it does not run on a faster path; empty when it does. */
  | {
      readonly kind: "fits-fast" | "fits-split" | "fits-host";
      readonly place: Place;
      readonly machine: Machine;
      readonly slower: string;
    }
  | { readonly kind: Exclude<VerdictKind, `fits-${string}`>; readonly reason: string; readonly shortBytes: number };

const FITS = { gpu: "fits-fast", split: "fits-split", cpu: "fits-host" } as const;

/** By totals alone. */
export function judge(requires: Requirements, node: Candidate): Verdict {
  const no = (kind: Exclude<VerdictKind, `fits-${string}`>, reason: string, shortBytes = 0): Verdict => ({
    kind,
    reason,
    shortBytes,
  });
  const { arch, nodeId, scene, servedModel } = requires;
  if (nodeId !== undefined && nodeId !== node.nodeId) return no("other-node", "another node is asked for");
  if (node.facts === null) return no("facts-unknown", `${node.name} has not told yet what it has`);
  if (arch !== undefined && arch !== node.facts.arch)
    return no("other-arch", `needs ${arch}, ${node.name} is ${node.facts.arch}`);
  const machine = machineOf(node.facts);
  const found = fit(requires, machine, totalRoom(machine));
  if (found.kind === "short") return shortage(node, found.misses);
  if (scene !== undefined && node.served.scene !== scene) return no("scene-not-served", sceneReason(scene, node));
  if (servedModel !== undefined && !node.served.models.includes(servedModel))
    return no("model-not-served", `no model ${servedModel} is served and verified on ${node.name} now`);
  const slower = found.misses.map((miss) => `${miss.path}: ${missText(miss)}`).join("; ");
  return { kind: FITS[found.place.path], place: found.place, machine, slower };
}

/** Told by the path that comes nearest; a GPU that cannot be used is named also where something else is too small. */
function shortage(node: Candidate, misses: readonly Miss[]): Verdict {
  const [small] = misses
    .filter((miss) => miss.kind === "small")
    .sort((a, b) => a.needBytes - a.bestBytes - (b.needBytes - b.bestBytes));
  const unusable = misses.find((miss) => miss.kind === "unusable");
  if (small !== undefined) {
    const shortBytes = small.needBytes - small.bestBytes;
    const [need, best, short] = [small.needBytes, small.bestBytes, shortBytes].map(gibibytes);
    const also = unusable === undefined ? "" : `; ${unusable.what}`;
    const reason = `too small: needs ${need} of ${small.what}, ${node.name} has ${best} at most, short by ${short}${also}`;
    return { kind: "too-small", reason, shortBytes };
  }
  if (unusable !== undefined)
    return { kind: "gpu-unusable", reason: `needs a GPU: on ${node.name}, ${unusable.what}`, shortBytes: 0 };
  const what = misses.some((miss) => miss.kind === "unified")
    ? "a split needs a card with memory of its own, and the GPU shares the machine's"
    : "it has none";
  return { kind: "gpu-missing", reason: `needs a GPU: on ${node.name}, ${what}`, shortBytes: 0 };
}

function sceneReason(scene: string, { name, served }: Candidate): string {
  if (served.active === scene) return `scene ${scene} is active on ${name}, and not all of its models are verified now`;
  return `scene ${scene} is not active on ${name}: ${served.active === null ? "none is" : `${served.active} is`}`;
}

/** What a report proves. While a scene changes, or the node is in doubt, nothing of it counts. */
export function servedOf(report: SceneReport | null): Served {
  if (report === null) return { scene: null, models: [], active: null };
  const { active, doubt, transition } = report;
  if (doubt !== null) return { scene: null, models: [], active };
  const models = report.models.filter((model) => model.condition === "healthy").map((model) => model.name);
  if (active === null || transition !== null) return { scene: null, models, active };
  const parts = report.scenes.find((scene) => scene.name === active)?.models;
  const isWhole = parts?.every((model) => models.includes(model)) === true;
  return { scene: isWhole ? active : null, models, active };
}

export function isFit(verdict: Verdict): verdict is Extract<Verdict, { place: Place }> {
  return "place" in verdict;
}

export type Answer =
  /** Some active, online node fits. */
  | { readonly kind: "fits" }
  /** no-node: none fits, nearest miss in numbers. away: only offline or draining ones do. refused: those that fit refuse every job. */
  | { readonly kind: "no-node" | "away" | "refused"; readonly reason: string };

/** What all nodes together mean for a profile. */
export function answerFor(requires: Requirements, nodes: readonly Candidate[]): Answer {
  const inService = nodes.filter((node) => node.status !== "retired");
  if (inService.length === 0)
    return { kind: "no-node", reason: "no node is enrolled: pair one with `holdfast node pair NAME`" };
  const verdicts = inService.map((node) => ({ node, verdict: judge(requires, node) }));
  const fitting = verdicts.filter(({ verdict }) => isFit(verdict)).map(({ node }) => node);
  if (fitting.some((node) => canServe(node))) return { kind: "fits" };
  if (fitting.length > 0) {
    const isRefused = fitting.some((node) => node.status === "active" && node.isOnline);
    const named = fitting.slice(0, 3).map((node) => `${node.name} (${whyAway(node)})`);
    const which = isRefused ? "only nodes that refuse jobs, or are away, fit" : "only offline or draining nodes fit";
    const reason = `${which}: ${named.join(", ")}${fitting.length > 3 ? " and more" : ""}`;
    return { kind: isRefused ? "refused" : "away", reason };
  }
  return { kind: "no-node", reason: `no node fits: ${nearestMiss(requires, verdicts)}` };
}

/** Why nothing can run a profile at present; undefined when an active, online node fits. */
export function blockedReason(requires: Requirements, nodes: readonly Candidate[]): string | undefined {
  const answer = answerFor(requires, nodes);
  return answer.kind === "fits" ? undefined : answer.reason;
}

/** Whether it takes jobs at all. */
export function canServe(node: Candidate): boolean {
  return node.status === "active" && node.isOnline && node.refuses === null;
}

export function whyAway(node: Candidate): string {
  if (node.status === "draining") return "draining";
  if (node.isOnline && node.refuses !== null) return `refuses every job: ${node.refuses}`;
  return node.lastHeartbeatAt === null ? "never seen" : `last seen ${node.lastHeartbeatAt}`;
}

/** The nearer a kind of miss is to a fit, the earlier it is told. */
const NEAREST: readonly VerdictKind[] = [
  "scene-not-served",
  "model-not-served",
  "too-small",
  "gpu-unusable",
  "gpu-missing",
  "other-arch",
  "facts-unknown",
];

type Judged = { readonly node: Candidate; readonly verdict: Verdict };

function nearestMiss(requires: Requirements, verdicts: readonly Judged[]): string {
  const misses = verdicts
    .map(({ verdict }) => verdict)
    .filter((verdict) => !isFit(verdict))
    .filter((verdict) => NEAREST.includes(verdict.kind))
    .sort((a, b) => NEAREST.indexOf(a.kind) - NEAREST.indexOf(b.kind) || a.shortBytes - b.shortBytes);
  return misses[0]?.reason ?? `node ${requires.nodeId ?? ""} is not in service`;
}
