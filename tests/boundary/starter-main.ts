// SPDX-License-Identifier: Apache-2.0
// A node that starts one numbered job after the other through boundary and launcher until it is killed. It says what it knew
// when it began (known N), what it started (started N), and what it closed (closed N). Jobs write their number into the ledger.

import path from "node:path";
import { Boundary, BOUNDARY_TENANT, storedIdentity } from "../../src/boundary/boundary.ts";
import { Locker, openSlot } from "../../src/locker/locker.ts";
import { launchIdOf, type PreparedLaunch } from "../../src/launcher/launcher.ts";
import type { JobId } from "../../src/std/ids.ts";
import { systemRandom } from "../../src/std/random.ts";
import { eventually, openLauncher } from "../launcher/kit.ts";
import { fingerprint } from "./kit.ts";

const [root = "", first = "0"] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const launcher = await openLauncher(root);
const slots = ["a", "b"].map((name) => openSlot(path.join(root, `slot-${name}`)));
const boundary = await Boundary.open(new Locker({ slots, fingerprint, random: systemRandom }).tenant(BOUNDARY_TENANT));
if (boundary.state.kind !== "trusted") say(`untrusted ${boundary.state.why}`);
const known = boundary.record.attempts.map(({ jobId }) => Number(jobId.slice("job_".length)));
for (const number of known) say(`known ${number}`);

const refOf = (number: number) => ({ jobId: `job_${number}` as JobId, epoch: "1" });
const launchOf = (number: number): string => launchIdOf({ kind: "attempt", ...refOf(number) });

async function prepare(number: number): Promise<PreparedLaunch | undefined> {
  const argv = ["sh", "-c", 'echo "$1" >> "$2"', "job", String(number), path.join(root, "ledger")];
  const prepared = await launcher.prepare({ purpose: { kind: "attempt", ...refOf(number) }, argv, environment: {} });
  return prepared.kind === "prepared" ? prepared.launch : undefined;
}

async function start(number: number): Promise<string> {
  const launch = await prepare(number);
  if (launch === undefined) return "already launched";
  const { launchId, identity } = launch;
  const started = await boundary.startAttempt({ ...refOf(number), launchId, identity: storedIdentity(identity) });
  if (started.kind === "admitted") {
    await launch.openGate();
    return "started";
  }
  await launch.abandon();
  return started.kind === "refused" ? started.reason : started.text;
}

for (const number of known) {
  await eventually("its end", async () =>
    (await launcher.adopt(launchOf(number))).kind === "alive" ? undefined : true,
  );
  // Whoever takes the directory away takes the launcher's fence away: then the boundary alone stands against a second start.
  await launcher.remove(launchOf(number));
  const again = await start(number);
  if (again !== "already-started") say(`${again} again ${number}`);
  await launcher.remove(launchOf(number));
  say(`closing ${number}`);
  await boundary.closeAttempt(refOf(number));
  say(`closed ${number}`);
}
say("up");
// One that the life before started and did not come to say is closed by now: a controller would not give it out again.
for (let number = Math.max(Number(first), ...known.map((each) => each + 1)); ; number++)
  say(`${await start(number)} ${number}`);
