// SPDX-License-Identifier: Apache-2.0
// What an agent finds of earlier lives at its start: launch directories, and entries of the record. Rule: none is left unlisted.

import { type Boundary, identityOfStored } from "../boundary/boundary.ts";
import type { LeaseRef } from "../protocol/agent-schema.ts";
import type { Adopted, Launcher } from "../launcher/launcher.ts";

/** An attempt of an earlier life. */
export type Held = { readonly lease: LeaseRef; readonly adopted: Adopted };

/** held: every attempt that a directory shows or the record knows. What the record knows and no directory shows was started
 * all the same: it gets a verdict too. others: launches that do not tell what they are for. */
export async function findLaunches(
  launcher: Launcher,
  boundary: Boundary,
): Promise<{ readonly held: readonly Held[]; readonly others: readonly Adopted[] }> {
  const recorded = new Map(boundary.record.attempts.map((entry) => [entry.launchId, entry]));
  const held: Held[] = [];
  const others: Adopted[] = [];
  for (const launchId of new Set([...(await launcher.list()), ...recorded.keys()])) {
    const entry = recorded.get(launchId);
    const identity = entry?.identity ?? undefined;
    const adopted = await launcher.adopt(launchId, identity === undefined ? undefined : identityOfStored(identity));
    const lease = entry === undefined ? leaseOf(adopted) : { jobId: entry.jobId, epoch: String(entry.epoch) };
    if (lease !== undefined) held.push({ lease, adopted });
    else if (adopted.spec === undefined) others.push(adopted);
  }
  return { held, others };
}

/** Also what a killed shim left: watching it ends that. */
export function isRunning(adopted: Adopted): adopted is Extract<Adopted, { kind: "alive" | "remains" }> {
  return adopted.kind === "alive" || adopted.kind === "remains";
}

function leaseOf(adopted: Adopted): LeaseRef | undefined {
  const purpose = adopted.spec?.purpose;
  return purpose?.kind === "attempt" ? { jobId: purpose.jobId, epoch: purpose.epoch } : undefined;
}

/** One attempt, in a map. */
export function keyOf(lease: LeaseRef): string {
  return `${lease.jobId}/${lease.epoch}`;
}
