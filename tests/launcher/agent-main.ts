// SPDX-License-Identifier: Apache-2.0
// A small agent that a test kills: it launches one job from its argument (JSON) and prints the launch id. With "gate" it
// stops before the gate, so that its death is the death of an agent in between.

import { start, prepare, openLauncher } from "./kit.ts";

const [root = "", mode = "", ...argv] = process.argv.slice(2);
const launcher = await openLauncher(root);
const launch = mode === "gate" ? await prepare(launcher, argv) : await start(launcher, argv);
process.stdout.write(`${launch.launchId}\n`);
if (mode === "once") {
  const ending = await launcher.waitEnding(launch);
  process.stdout.write(`${JSON.stringify(ending)}\n`);
} else {
  setInterval(() => {}, 1000);
}
