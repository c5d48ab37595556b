// SPDX-License-Identifier: Apache-2.0
// What the reports of a pairing amount to, pure: its steps in order, and how it stands. Rule: that a node is online is the
// controller's own word (a heartbeat after the code was used), never the script's.

import { type EnrolPhase, enrolPhases, type Pairing } from "./enrol-schema.ts";
import { errorRow, isErrorCode } from "./errors.ts";
import type { Node } from "./node-schema.ts";

/** Every run of the script goes through these; the others are shown when they were reported. */
const ALWAYS: ReadonlySet<EnrolPhase> = new Set(["fetch", "install", "pair", "start", "prove"]);

export type EnrolStep = {
  readonly phase: EnrolPhase;
  readonly state: "waiting" | "begun" | "done" | "failed";
  readonly detail: string;
  readonly beganAt: string | null;
  readonly endedAt: string | null;
};

/** Of the last run of the script: one that begins anew forgets what the one before had reported. */
export function stepsOf(phases: Pairing["phases"]): readonly EnrolStep[] {
  let seen = new Map<EnrolPhase, EnrolStep>();
  let furthest = -1;
  for (const { phase, outcome, detail, at } of phases) {
    const place = enrolPhases.indexOf(phase);
    if (outcome === "begun" && place <= furthest) seen = new Map();
    if (outcome === "begun") furthest = place;
    const beganAt = outcome === "begun" ? at : (seen.get(phase)?.beganAt ?? null);
    seen.set(phase, { phase, state: outcome, detail, beganAt, endedAt: outcome === "begun" ? null : at });
  }
  return enrolPhases.flatMap((phase) => {
    const step = seen.get(phase);
    if (step !== undefined) return [step];
    return ALWAYS.has(phase) ? [{ phase, state: "waiting", detail: "", beganAt: null, endedAt: null } as const] : [];
  });
}

export type Outlook =
  /** The code is good, and nobody used it yet. */
  | { readonly kind: "waiting" }
  | { readonly kind: "going" }
  /** advice: what to do, in sentences. needsCode: this code helps no more. */
  | {
      readonly kind: "failed";
      readonly phase: EnrolPhase;
      readonly text: string;
      readonly advice: string;
      readonly needsCode: boolean;
    }
  /** Paired, and the script has ended; nothing starts the agent there by itself. */
  | { readonly kind: "idle" }
  | { readonly kind: "online" }
  /** It was online since, and is not now. */
  | { readonly kind: "offline" }
  | { readonly kind: "expired" };

type Seen = Pick<Node, "online" | "lastHeartbeatAt" | "status">;

/** node: the one that it made or took over; undefined while there is none. */
export function outlookOf(pairing: Pairing, node: Seen | undefined): Outlook {
  const last = pairing.phases.at(-1);
  const failure = last?.outcome === "failed" ? last : undefined;
  if (node?.online === true && isAfter(node.lastHeartbeatAt, failure?.at ?? pairing.usedAt)) return { kind: "online" };
  if (failure !== undefined) {
    const { phase, detail } = failure;
    const needsCode = pairing.state !== "waiting";
    return { kind: "failed", phase, text: detail, advice: adviceOf(pairing, detail), needsCode };
  }
  if (node !== undefined && isAfter(node.lastHeartbeatAt, pairing.usedAt)) return { kind: "offline" };
  if (pairing.state === "expired") return { kind: "expired" };
  if (pairing.state === "paired" && last?.phase === "prove" && last.outcome === "done") return { kind: "idle" };
  return pairing.state === "waiting" && last === undefined ? { kind: "waiting" } : { kind: "going" };
}

/** Both by the database's clock. With a node that takes over, heartbeats of the machine before it do not count. */
function isAfter(heartbeatAt: string | null, at: string | null): boolean {
  return heartbeatAt !== null && at !== null && Date.parse(heartbeatAt) > Date.parse(at);
}

/** The script puts the code of a known failure before its text. */
function adviceOf({ state, name }: Pairing, text: string): string {
  const code = /^([a-z_]+): /.exec(text)?.[1];
  const known = code !== undefined && isErrorCode(code) ? `${errorRow(code).advice.replace(/\.?$/, ".")} ` : "";
  switch (state) {
    case "waiting":
      return `${known}What it did was undone there. Mend that and run the command again: the code is still good.`;
    case "paired":
      return `${known}What it did was undone there, and the code is used: mend that, then take ${name} over with a new code.`;
    case "expired":
      return `${known}What it did was undone there, and the code has expired: mend that, then make a new one.`;
    default:
      return state satisfies never;
  }
}

/** Worth a look until its machine was online or its code has ended. */
export function isUnderWay(pairing: Pairing, node: Seen | undefined, now: number): boolean {
  if (pairing.state === "expired" || Date.parse(pairing.expiresAt) <= now || node?.status === "retired") return false;
  const { kind } = outlookOf(pairing, node);
  return kind !== "online" && kind !== "offline";
}
