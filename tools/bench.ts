// SPDX-License-Identifier: Apache-2.0
// npm run bench -- boundary|gateway|switch [--json] [--rounds N] [--directory D]: what docs/benchmarks.md says, measured again. Rule: peers are
// measured in the same run, in interleaved rounds; with --json one object a line. Exit 1 when a goal was missed.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { benchBoundary, type Measure } from "../bench/boundary.ts";
import { benchGateway } from "../bench/gateway.ts";
import { benchSwitch } from "../bench/switch.ts";

type Bench = (directory: string, rounds: number | undefined) => Promise<readonly Measure[]>;

const BENCHES: { readonly [name: string]: Bench } = {
  switch: (directory, rounds = 10) => benchSwitch({ directory, rounds }),
  gateway: (directory, rounds = 5) => benchGateway({ directory, rounds }),
  boundary: async (directory, rounds = 30) => [
    ...(await benchBoundary({ directory: path.join(directory, "one"), rounds, slots: 1 })),
    ...(await benchBoundary({ directory: path.join(directory, "two"), rounds, slots: 2 })),
  ],
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false }, rounds: { type: "string" }, directory: { type: "string" } },
});
const [name = ""] = positionals;
const bench = BENCHES[name];
const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
if (bench === undefined || (rounds !== undefined && !(Number.isSafeInteger(rounds) && rounds >= 1))) {
  process.stderr.write(
    `usage: npm run bench -- ${Object.keys(BENCHES).join("|")} [--json] [--rounds N] [--directory D]\n`,
  );
  process.exit(2);
}
const directory = fs.mkdtempSync(path.join(values.directory ?? os.tmpdir(), "bench-"));
try {
  for (const sub of ["one", "two"]) fs.mkdirSync(path.join(directory, sub));
  for (const measure of await bench(directory, rounds)) {
    const { measure: what, unit, us, peers, ratio, goal, met } = measure;
    const others = Object.entries(peers).map(([peer, number]) => `${peer} ${number}`);
    const text = `${what}: ${us} ${unit} (${others.join(", ")}), ratio ${ratio}${goal === "" ? "" : `, goal ${goal}: ${met ? "met" : "missed"}`}`;
    process.stdout.write(`${values.json ? JSON.stringify(measure) : text}\n`);
    if (!met) process.exitCode = 1;
  }
} finally {
  fs.rmSync(directory, { recursive: true, force: true });
}
