// SPDX-License-Identifier: Apache-2.0
// npm run sim -- [SUITE] [--seeds N] [--seed S] [--minutes M] [--variant NAME] [--json]: the simulator over many seeds. Rule: the
// last line of --json is { suite, seeds, violations, seconds }; a seed that breaks something is printed, and kept by hand in
// tests/sim/seeds.json. Exit 1 when something was broken.

import { parseArgs } from "node:util";
import { VARIANTS } from "../tests/sim/run.ts";
import { describeFailure, runSeeds, SUITES } from "../tests/sim/suites.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: "string" },
    seed: { type: "string" },
    minutes: { type: "string" },
    variant: { type: "string" },
    json: { type: "boolean", default: false },
  },
});

function wholeNumber(name: "seeds" | "seed" | "minutes", fallback: number): number {
  const given = values[name];
  const number = given === undefined ? fallback : Number(given);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  process.stderr.write(`--${name} is not a whole number: ${given ?? ""}\n`);
  process.exit(2);
}

const names = positionals.length === 0 ? Object.keys(SUITES) : positionals;
const unknown = names.find((name) => SUITES[name] === undefined);
const variant = VARIANTS.find((name) => name === values.variant);
if (unknown !== undefined || (values.variant !== undefined && variant === undefined)) {
  const [what, known] = unknown === undefined ? ["variant", VARIANTS] : ["suite", Object.keys(SUITES)];
  process.stderr.write(`there is no ${what} "${unknown ?? values.variant}"; there are: ${known.join(", ")}\n`);
  process.exit(2);
}
const minutes = values.minutes === undefined ? undefined : wholeNumber("minutes", 1);
const from = wholeNumber("seed", 1);
const alone = values.seed !== undefined && values.seeds === undefined && minutes === undefined;
const count = wholeNumber("seeds", alone ? 1 : minutes === undefined ? 1000 : Number.MAX_SAFE_INTEGER - from);

let violations = 0;
for (const suite of names) {
  const began = performance.now();
  const seconds = (): number => Math.round(performance.now() - began) / 1000;
  const { seeds, failures } = await runSeeds({
    suite,
    from,
    count,
    ...(variant === undefined ? {} : { variant }),
    isOver: () => minutes !== undefined && seconds() > (minutes * 60) / names.length,
    onFailure: (failure) => void process.stderr.write(`${describeFailure(suite, failure)}\n`),
  });
  violations += failures.length;
  const end = { suite, seeds, violations: failures.length, seconds: seconds() };
  process.stdout.write(
    values.json
      ? `${JSON.stringify(end)}\n`
      : `${suite}: ${seeds} seeds, ${failures.length} violations, ${end.seconds} s\n`,
  );
}
process.exitCode = violations === 0 ? 0 : 1;
