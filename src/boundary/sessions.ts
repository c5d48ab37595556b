// SPDX-License-Identifier: Apache-2.0
// Sessions in the record, pure: a job is committed at its position before its gate opens, positions in chain order; a head
// may be burned, and then its successor may run; a position that was decided is answered the same way for ever.

import { sameBytes } from "../locker/envelope.ts";
import { changeNetwork, findSession, joinExecuted, type Asked, type OrderingPort } from "./admission.ts";
import {
  type BoundaryRecord,
  ENTRIES_MAX,
  EXECUTED_MAX,
  HANDLED_MAX,
  SESSIONS_MAX,
  type SessionEntry,
  type SessionRecord,
  type StoredIdentity,
} from "./record.ts";

export type JobStart = Asked & {
  readonly job: Uint8Array;
  /** The job id that may come after this one. */
  readonly successor: Uint8Array;
  readonly launchId: string;
  readonly identity: StoredIdentity;
};

export type Committed =
  | { readonly kind: "committed"; readonly record: BoundaryRecord }
  /** known: what this node knows of its end, empty while it runs. */
  | { readonly kind: "already-handled"; readonly known: string }
  /** Its predecessor was neither settled nor refused here. */
  | { readonly kind: "waits" }
  | { readonly kind: "refused"; readonly reason: "full" };

export type CommitRules = { readonly order: OrderingPort; readonly isAboveFloor: boolean };

/** Advances the chain by one job. */
export function commitJob(record: BoundaryRecord, start: JobStart, rules: CommitRules): Committed {
  const at = changeNetwork(record, start.network);
  const known = findSession(at, start);
  if (known !== undefined) {
    const handled = handledAs(known, start.job);
    if (handled !== undefined) return { kind: "already-handled", known: handled };
    if (!sameBytes(known.successor, start.job)) return { kind: "waits" };
  }
  const open = at.sessions.reduce((sum, session) => sum + session.entries.length, 0);
  if (open >= ENTRIES_MAX) return { kind: "refused", reason: "full" };
  const entry: SessionEntry = {
    job: start.job,
    launchId: start.launchId,
    identity: start.identity,
    stage: "released",
    outcome: "",
  };
  const before: SessionRecord = known ?? newSession(start);
  const after: SessionRecord = {
    ...before,
    head: start.job,
    successor: start.successor,
    handled: withHandled(before, start.job),
    entries: [...before.entries, entry],
  };
  const executed = joinExecuted(at.executed, start.start, rules.order, rules.isAboveFloor);
  const sessions =
    known === undefined
      ? withRoom([...at.sessions, after])
      : at.sessions.map((each) => (each === known ? after : each));
  if (sessions === undefined || executed.length > EXECUTED_MAX) return { kind: "refused", reason: "full" };
  return { kind: "committed", record: { ...at, executed, sessions } };
}

function newSession({ network, session, start, job }: JobStart): SessionRecord {
  return { network, session, start, head: null, successor: job, handled: [], entries: [] };
}

/** The oldest ones leave whose entry left: such a position is not the successor and never will be, so if it comes again it
 * waits for ever instead of being answered. It never runs again. */
function withHandled({ handled, entries }: SessionRecord, job: Uint8Array): readonly Uint8Array[] {
  const isOpen = (id: Uint8Array): boolean => entries.some((entry) => sameBytes(entry.job, id));
  const leaving = handled.length < HANDLED_MAX ? undefined : handled.find((id) => !isOpen(id));
  return [...handled.filter((id) => id !== leaving), job];
}

/** What this node knows of a position that it has decided; undefined when it has not. */
export function handledAs(session: SessionRecord, job: Uint8Array): string | undefined {
  if (!session.handled.some((handled) => sameBytes(handled, job))) return undefined;
  return session.entries.find((entry) => sameBytes(entry.job, job))?.outcome ?? "";
}

export type Burn = Asked & {
  readonly job: Uint8Array;
  /** What takes its place: H(burned, id). */
  readonly successor: Uint8Array;
};

/** Skips a position: it will never run here, and its successor may. Computed from the live record, so a burn cannot undo an advance. */
export function burnJob(record: BoundaryRecord, burn: Burn, rules: CommitRules): Committed {
  const at = changeNetwork(record, burn.network);
  const known = findSession(at, burn);
  const before = known ?? {
    network: burn.network,
    session: burn.session,
    start: burn.start,
    head: null,
    successor: burn.job,
    handled: [],
    entries: [],
  };
  const handled = handledAs(before, burn.job);
  if (handled !== undefined) return { kind: "already-handled", known: handled };
  if (!sameBytes(before.successor, burn.job)) return { kind: "waits" };
  const after: SessionRecord = { ...before, successor: burn.successor, handled: withHandled(before, burn.job) };
  const executed = joinExecuted(at.executed, burn.start, rules.order, rules.isAboveFloor);
  const sessions =
    known === undefined
      ? withRoom([...at.sessions, after])
      : at.sessions.map((each) => (each === known ? after : each));
  if (sessions === undefined || executed.length > EXECUTED_MAX) return { kind: "refused", reason: "full" };
  return { kind: "committed", record: { ...at, executed, sessions } };
}

/** Oldest settled sessions leave; undefined when none of too many is settled. */
function withRoom(sessions: readonly SessionRecord[]): readonly SessionRecord[] | undefined {
  if (sessions.length <= SESSIONS_MAX) return sessions;
  const leaving = sessions.slice(0, -1).find((session) => session.entries.length === 0);
  return leaving === undefined ? undefined : sessions.filter((session) => session !== leaving);
}

export function endJob(record: BoundaryRecord, session: Uint8Array, job: Uint8Array, outcome: string): BoundaryRecord {
  const isOpen = (entry: SessionEntry): boolean =>
    sameBytes(entry.job, job) &&
    (entry.stage === "released" || (entry.outcome === "interrupted" && outcome !== "interrupted"));
  return mapEntries(record, session, (entries) =>
    entries.some(isOpen)
      ? entries.map((entry) => (isOpen(entry) ? { ...entry, stage: "ended" as const, outcome } : entry))
      : entries,
  );
}

/** Its ending is in our own durable log and acknowledged by a named peer. The handled id stays. */
export function closeJob(record: BoundaryRecord, session: Uint8Array, job: Uint8Array): BoundaryRecord {
  const isOver = (entry: SessionEntry): boolean => sameBytes(entry.job, job) && entry.stage === "ended";
  return mapEntries(record, session, (entries) =>
    entries.some(isOver) ? entries.filter((entry) => !isOver(entry)) : entries,
  );
}

function mapEntries(
  record: BoundaryRecord,
  session: Uint8Array,
  change: (entries: readonly SessionEntry[]) => readonly SessionEntry[],
): BoundaryRecord {
  const known = record.sessions.find((each) => sameBytes(each.session, session));
  const entries = known === undefined ? undefined : change(known.entries);
  // The very same record: nothing needs to be stored.
  if (known === undefined || entries === undefined || entries === known.entries) return record;
  return { ...record, sessions: record.sessions.map((each) => (each === known ? { ...each, entries } : each)) };
}
