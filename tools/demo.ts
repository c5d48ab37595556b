// SPDX-License-Identifier: Apache-2.0
// npm run demo [-- --runs N]: the promises on a real fleet, a checked and printed line each. Exit 1 when one does not hold.

import { parseArgs } from "node:util";
import pc from "picocolors";
import { demonstrate } from "../demo/demo.ts";
import { ensureBundle } from "./bundle.ts";

const { values } = parseArgs({ options: { runs: { type: "string", default: "1" } } });
const runs = Number(values.runs);
if (!Number.isInteger(runs) || runs < 1 || runs > 100) {
  process.stderr.write("usage: npm run demo [-- --runs N]\n");
  process.exit(2);
}
const say = (text: string): void => void process.stdout.write(`${text}\n`);
say(ensureBundle(process.arch).trim());
for (let run = 1; run <= runs; run++) {
  const began = performance.now();
  const suffix = `${process.pid.toString(36)}${run}`;
  say(pc.bold(`Run ${run} of ${runs}, ${suffix}`));
  try {
    await demonstrate(suffix, (promise, text) => say(`  ${pc.green("✓")} ${promise.padEnd(4)}${text}`));
  } catch (error) {
    say(`  ${pc.red("✗")} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    process.exitCode = 1;
    break;
  }
  say(`  ${((performance.now() - began) / 1000).toFixed(1)} s`);
}
