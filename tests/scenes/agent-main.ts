// SPDX-License-Identifier: Apache-2.0
// An agent without a controller for tests: keeps the scenes of a root with short times, or activates one scene once; and ends
// itself with SIGKILL at the n-th step that lasts.

import { startScenes } from "../../src/bin/agent-scenes.ts";
import { openScenes } from "../../src/bin/scene.ts";
import { stderrLog } from "../../src/bin/logs.ts";

const { root, dieAt, activate, adopt, floorBytes } = JSON.parse(process.argv[2] ?? "{}") as {
  root: string;
  dieAt?: number;
  activate?: string;
  adopt?: string;
  floorBytes?: number;
};

let steps = 0;
const onStep = (): Promise<void> => {
  steps++;
  if (steps === dieAt) process.kill(process.pid, "SIGKILL");
  // The signal arrives before anything else happens.
  return steps === dieAt ? new Promise(() => {}) : Promise.resolve();
};

const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
const keepAlive = setInterval(() => {}, 60_000);

if (activate === undefined && adopt === undefined) {
  const times = { healthMs: 200, backoffFirstMs: 20, backoffMaxMs: 200, budget: 3, budgetMs: 60_000 };
  const log = await stderrLog({});
  const scenes = await startScenes({
    root,
    env: process.env,
    log,
    times,
    onStep,
    ...(floorBytes === undefined ? {} : { floorBytes }),
  });
  process.stderr.write("ready\n");
  await new Promise((resolve) => stop.signal.addEventListener("abort", resolve, { once: true }));
  await scenes[Symbol.asyncDispose]();
} else {
  await using opened = await openScenes({ root, env: process.env, onStep });
  if (adopt !== undefined) await opened.context.scenes.adopt(adopt);
  if (activate !== undefined) await opened.context.scenes.activate(activate, { emit: () => {}, signal: stop.signal });
  process.stdout.write(`${steps}\n`);
}
clearInterval(keepAlive);
