// SPDX-License-Identifier: Apache-2.0
// What a controller of a test hands to new machines: a real authority of its own, and the agent and runtime of this checkout.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { enrolmentOf } from "../../src/bin/artefacts.ts";
import { openFleet } from "../../src/bin/fleet.ts";
import type { Enrolment } from "../../src/controller/enrolment.ts";
import { systemClock } from "../../src/std/clock.ts";
import { ensureBundle } from "../../tools/bundle.ts";
import { cleanupOf } from "./cleanup.ts";

/** Of a controller that serves plain HTTP. */
export async function plainEnrolment(t: TestContext): Promise<Enrolment> {
  const bundle = fileURLToPath(new URL(`../../dist/agent-linux-${process.arch}.tar.gz`, import.meta.url));
  // Any bundle does: nothing of it is run.
  if (!fs.existsSync(bundle)) ensureBundle(process.arch);
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-fleet-"));
  cleanupOf(t).defer(() => fs.rmSync(root, { recursive: true }));
  const fleet = await openFleet(root, systemClock);
  return enrolmentOf({ fleet, tls: { kind: "off" }, served: () => undefined });
}
