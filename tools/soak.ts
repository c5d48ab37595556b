// SPDX-License-Identifier: Apache-2.0
// npm run soak -- scenes [--switches N] [--seed S] [--json]: long runs under load with sudden deaths, that no test has time for.
// Exit 1 when something failed that must not.

import { parseArgs } from "node:util";
import { soakScenes } from "../soak/scenes.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { switches: { type: "string" }, seed: { type: "string" }, json: { type: "boolean", default: false } },
});
const switches = Number(values.switches ?? 200);
const seed = Number(values.seed ?? 1);
if (positionals[0] !== "scenes" || !Number.isSafeInteger(switches) || !Number.isSafeInteger(seed)) {
  process.stderr.write("usage: npm run soak -- scenes [--switches N] [--seed S] [--json]\n");
  process.exit(2);
}
const result = await soakScenes(switches, seed);
process.stdout.write(
  values.json
    ? `${JSON.stringify(result)}\n`
    : `${Object.entries(result)
        .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(" → ") : String(value)}`)
        .join("\n")}\n`,
);
const { failed, wrongAnswers, orphans, strangersKilled } = result;
if (failed + wrongAnswers + orphans + strangersKilled > 0) process.exitCode = 1;
