// SPDX-License-Identifier: Apache-2.0
// Promise P7 under forced pid reuse: a stranger has the pid of the process that was to be signalled, taken before the check or
// exactly between check and send. Choosing the next pid takes root and a pid namespace.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("pid-reuse-main.ts", import.meta.url));

type Round = {
  readonly send: string;
  readonly moment: "before" | "before-same-ticks" | "between";
  /** Whether this kernel tells two processes in one tick apart (6.9 and newer). */
  readonly hasInode: boolean;
  readonly isHit: boolean;
  readonly signalled: { readonly kind: string; readonly reason?: string };
  readonly isStrangerAlive: boolean;
};

test("a stranger that took the pid, also between check and send, is never signalled", () => {
  const options = { encoding: "utf8", timeout: 120_000 } as const;
  const inNamespace = ["--pid", "--fork", "--mount-proc", "--kill-child", process.execPath, main];
  const { stdout, stderr, status } = spawnSync("unshare", inNamespace, options);
  assert.equal(status, 0, stderr);
  const rounds = JSON.parse(stdout) as readonly Round[];
  for (const moment of ["before", "before-same-ticks", "between"] as const) {
    const hits = rounds.filter((round) => round.moment === moment && round.isHit);
    assert(hits.length >= 8, `the pid was reused in ${hits.length} of 16 rounds: ${moment}`);
    for (const { send, signalled, isStrangerAlive, hasInode } of hits) {
      if (moment === "before-same-ticks" && !hasInode) continue;
      assert.equal(isStrangerAlive, true, `the stranger lives: ${send}, ${moment}`);
      assert.deepEqual(signalled, { kind: "refused", reason: moment === "between" ? "gone" : "reused" });
    }
  }
});
