// SPDX-License-Identifier: Apache-2.0
// A boundary on real directories, one a slot, and starts to give it.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import type { AttemptStart } from "../../src/boundary/attempts.ts";
import { Boundary, BOUNDARY_TENANT, storedIdentity } from "../../src/boundary/boundary.ts";
import { Locker, openSlot, type Tenant } from "../../src/locker/locker.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";

export const fingerprint: Uint8Array = new Uint8Array(32).fill(7);

export function directoryOf(t: TestContext): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "boundary-"));
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export type BoundaryLife = Disposable & { readonly boundary: Boundary; readonly tenant: Tenant };

/** One life of a node's boundary: its slots are free again when it is disposed of. */
export async function openBoundary(places: readonly string[]): Promise<BoundaryLife> {
  const stack = new DisposableStack();
  const slots = places.map((place) => stack.use(openSlot(place)));
  const tenant = new Locker({ slots, fingerprint, random: systemRandom }).tenant(BOUNDARY_TENANT);
  return { boundary: await Boundary.open(tenant), tenant, [Symbol.dispose]: () => stack.dispose() };
}

const identity = storedIdentity({ bootId: "6b1a8e9c-0f3d-4c55-9d7e-2a1b3c4d5e6f", pid: 77, startTicks: "123456" });

export function startOf(number: number, epoch = "1"): AttemptStart {
  const jobId = `job_${String(number).padStart(26, "0")}`;
  return { jobId, epoch, launchId: `attempt-${jobId}-${epoch}`, identity };
}
