// SPDX-License-Identifier: Apache-2.0
// `holdfast boundary show | verify | reset` on a node: reads the slots as they lie, with or without a running agent; only a
// reset takes their lock.

import fs from "node:fs";
import path from "node:path";
import {
  type BoundaryRecord,
  type BoundaryState,
  BOUNDARY_TENANT,
  readBoundary,
  resetBoundary,
} from "../boundary/boundary.ts";
import { agentLockFile, loadOrMakeNodeKey, nodeDirectory } from "../enrol/node-key.ts";
import { openEnvelope } from "../locker/envelope.ts";
import { judge, type Reading } from "../locker/judge.ts";
import { loadedOf, readSlotFile } from "../locker/locker.ts";
import type { BoundarySeen, SlotSeen } from "../cli/programs.ts";
import { Failure } from "../std/errors.ts";
import { lockHolder } from "../std/lock.ts";
import { fingerprintOf, knownSlots, openLocker } from "./locker.ts";
import { type Environment, rootFrom } from "./settings.ts";

export function showBoundary(options: { readonly root?: string }, env: Environment): BoundarySeen {
  const root = rootFrom(env, options.root);
  if (!fs.existsSync(path.join(nodeDirectory(root), "node.key")))
    throw new Failure("not_paired", `there is no node in ${root}`);
  const fingerprint = fingerprintOf(loadOrMakeNodeKey(nodeDirectory(root)));
  const slots = knownSlots(root).map((place) => ({ place, reading: readSlotFile(path.join(place, BOUNDARY_TENANT)) }));
  const verdict = judge(
    slots.map(({ reading }) => reading),
    fingerprint,
  );
  const loaded = loadedOf(verdict, slots);
  const { record, state } = readBoundary(loaded);
  const repair = verdict.kind === "adopt" ? verdict.repair : [];
  return {
    state: state.kind,
    why: whyOf(state),
    slots: slots.map(({ place, reading }, index) => slotSeen(place, reading, repair.includes(index))),
    lineage: loaded.kind === "adopted" ? Buffer.from(loaded.lineage).toString("hex") : null,
    sequence: loaded.kind === "adopted" ? String(loaded.sequence) : null,
    agent: lockHolder(agentLockFile(root)) ?? null,
    attempts: attemptsOf(record),
    sessions: record.sessions.length,
  };
}

function whyOf(state: BoundaryState): string | null {
  return state.kind === "trusted" ? null : state.why;
}

function attemptsOf(record: BoundaryRecord): BoundarySeen["attempts"] {
  return record.attempts.map(({ jobId, epoch, launchId, identity, stage, outcome }) => ({
    jobId,
    epoch: String(epoch),
    launchId,
    pid: identity?.pid ?? null,
    stage,
    outcome,
  }));
}

function slotSeen(place: string, reading: Reading, isLagging: boolean): SlotSeen {
  if (reading.kind === "missing")
    return { place, text: isLagging ? "missing: repaired at the next start" : "empty", sequence: null };
  if (reading.kind === "unreadable")
    return { place, text: `cannot be read (${reading.errno}): check this disk`, sequence: null };
  const opened = openEnvelope(reading.bytes);
  if (opened.kind === "corrupt") return { place, text: `damaged: ${opened.why}`, sequence: null };
  const { sequence, record } = opened.envelope;
  const text = `${record.length} bytes${isLagging ? ", behind: repaired at the next start" : ""}`;
  return { place, text, sequence: String(sequence) };
}

/** Refused while an agent runs, whose record would be taken from under it. */
export async function resetBoundaryOf(options: { readonly root?: string }, env: Environment): Promise<void> {
  const root = rootFrom(env, options.root);
  const holder = lockHolder(agentLockFile(root));
  if (holder !== undefined) throw new Failure("root_in_use", `an agent runs on ${root} (pid ${holder}): stop it first`);
  await using stack = new AsyncDisposableStack();
  const locker = openLocker(root, undefined, loadOrMakeNodeKey(nodeDirectory(root)), stack);
  await resetBoundary(locker.tenant(BOUNDARY_TENANT));
}
