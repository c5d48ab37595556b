// SPDX-License-Identifier: Apache-2.0
// Opens a boundary on the slots that are given and starts attempts, one after the other, saying how each went: N KIND. With a
// count of 0 it goes on until it is killed.

import { openBoundary, startOf } from "./kit.ts";

const [first = "1", count = "0", ...slots] = process.argv.slice(2);
const last = count === "0" ? Infinity : Number(first) + Number(count) - 1;
const { boundary } = await openBoundary(slots);
process.stdout.write(`state ${boundary.state.kind}\n`);
for (let number = Number(first); number <= last; number++) {
  const started = await boundary.startAttempt(startOf(number));
  process.stdout.write(`${number} ${started.kind}${started.kind === "admitted" ? "" : ` ${started.text}`}\n`);
}
