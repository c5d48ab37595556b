// SPDX-License-Identifier: Apache-2.0
// Whether the next job of a session may run on this node, pure and in this order. How two session starts relate is asked of
// an ordering port: the message log answers it. Rule: what cannot be ranked is not run.

import { sameBytes } from "../locker/envelope.ts";
import { isBurned, withBurned } from "./burned.ts";
import type { BoundaryRecord, SessionRecord } from "./record.ts";

export type Ordering = "dominates" | "below" | "equal" | "concurrent" | "unknown";

/** How the first start stands to the second: dominates = it was made with knowledge of it. */
export type OrderingPort = (start: Uint8Array, other: Uint8Array) => Ordering;

/** In memory only, detected anew in each life. */
export type StartFloor = {
  /** The own message past which a start must lie. */
  readonly past: Uint8Array;
};

export type BoundaryView =
  | { readonly kind: "trusted"; readonly record: BoundaryRecord | undefined }
  | { readonly kind: "untrusted" };

export type Asked = {
  readonly network: Uint8Array;
  readonly session: Uint8Array;
  readonly start: Uint8Array;
};

export type Admission =
  | { readonly kind: "untrusted" }
  | { readonly kind: "skipped"; readonly reason: "below-floor" }
  /** successor: where the session's chain resumes; undefined: at its own beginning. */
  | { readonly kind: "admit"; readonly successor: Uint8Array | undefined }
  /** Report it, raise the start floor past the report, then skip. */
  | { readonly kind: "session-hop" };

export type AdmissionState = {
  readonly boundary: BoundaryView;
  readonly floor: StartFloor | undefined;
  readonly order: OrderingPort;
};

export function admit({ boundary, floor, order }: AdmissionState, asked: Asked): Admission {
  if (boundary.kind === "untrusted") return { kind: "untrusted" };
  const isAboveFloor = floor !== undefined && order(asked.start, floor.past) === "dominates";
  if (floor !== undefined && !isAboveFloor) return { kind: "skipped", reason: "below-floor" };
  const { record } = boundary;
  if (record === undefined || record.network === null) return { kind: "admit", successor: undefined };
  if (!sameBytes(record.network, asked.network)) return { kind: "admit", successor: undefined };
  const known = findSession(record, asked);
  if (known !== undefined) return { kind: "admit", successor: known.successor };
  const standings = record.executed.map((executed) => order(asked.start, executed));
  if (standings.every((standing) => standing === "dominates")) return { kind: "admit", successor: undefined };
  // A floor stands in for what the log cannot rank. It says nothing of what was executed above it: a session that ran in this
  // life and has left the record since is equal to a start in executed, or below one.
  const wasExecuted = standings.some((standing) => standing === "equal" || standing === "below");
  return isAboveFloor && !wasExecuted ? { kind: "admit", successor: undefined } : { kind: "session-hop" };
}

export function findSession(
  record: BoundaryRecord,
  asked: Pick<Asked, "network" | "session">,
): SessionRecord | undefined {
  return record.sessions.find(
    (known) => sameBytes(known.session, asked.session) && sameBytes(known.network, asked.network),
  );
}

export type Entry =
  | { readonly kind: "enter" }
  /** The start floor goes past our own announcement. */
  | { readonly kind: "enter-above"; readonly report: "none" | "universe-flip-flop" };

/** What entering a network asks for before anything of it may run. */
export function enterNetwork(record: BoundaryRecord | undefined, network: Uint8Array, hasHistory: boolean): Entry {
  if (record === undefined || record.network === null)
    return hasHistory ? { kind: "enter-above", report: "none" } : { kind: "enter" };
  if (sameBytes(record.network, network)) return { kind: "enter" };
  return isBurned(record.burned, network) ? { kind: "enter-above", report: "universe-flip-flop" } : { kind: "enter" };
}

/** executed with one more start: a join. Members that it dominates leave, and so do those that nobody can rank any more, if it lies above a floor. */
export function joinExecuted(
  executed: readonly Uint8Array[],
  start: Uint8Array,
  order: OrderingPort,
  isAboveFloor: boolean,
): readonly Uint8Array[] {
  if (executed.some((known) => sameBytes(known, start) || order(known, start) === "dominates")) return executed;
  const kept = executed.filter((known) => {
    const standing = order(start, known);
    return standing !== "dominates" && !(standing === "unknown" && isAboveFloor);
  });
  return [...kept, start];
}

/** The watermark of another network is overwritten: that one is burned. Its sessions are of no use any more. */
export function changeNetwork(record: BoundaryRecord, network: Uint8Array): BoundaryRecord {
  if (record.network !== null && sameBytes(record.network, network)) return record;
  const burned = record.network === null ? record.burned : withBurned(record.burned, record.network);
  return { ...record, network, burned, executed: [] };
}
