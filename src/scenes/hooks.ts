// SPDX-License-Identifier: Apache-2.0
// A command around a switch, run by the launcher with a time limit. Rule: a hook that fails, fails the switch.

import { Failure } from "../std/errors.ts";
import type { Emit } from "./events.ts";
import type { SceneLedger } from "./ledger.ts";
import type { Scene } from "./registry.ts";
import type { Servers } from "./servers.ts";

export type Hook = {
  readonly servers: Servers;
  readonly ledger: SceneLedger;
  readonly scene: Scene;
  readonly which: "before" | "after";
  readonly emit: Emit;
};

export async function runHook({ servers, ledger, scene, which, emit }: Hook): Promise<void> {
  const argv = scene.hooks[which];
  if (argv === undefined) return;
  emit({ kind: "note", text: `hook ${which}: ${argv.join(" ")}`, ms: 0 });
  const fault = await servers.runHook({ argv, scene: scene.name, which, generation: await ledger.nextGeneration() });
  if (fault !== undefined) throw new Failure("scene_failed", `hook ${which} of ${scene.name} failed: ${fault}`);
}
