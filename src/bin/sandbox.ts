// SPDX-License-Identifier: Apache-2.0
// What doctor tells of the sandbox that the running agent asked for and got, and of whom its jobs run as.

import { spawnSync } from "node:child_process";
import { ASKED, type Asked, compareSandbox, readSandbox } from "../enrol/sandbox.ts";
import type { Check } from "../protocol/access-schema.ts";
import { readOrEmpty } from "../std/files.ts";

const UNIT = "holdfast-agent.service";
const SYSTEMCTL_MS = 5_000;

export function checkSandbox(root: string, pid: number): readonly Check[] {
  const got = readSandbox(root, pid);
  if (got === undefined) return [];
  const jobs: Check = {
    name: "jobs",
    state: "ok",
    text:
      got.jobAccount === null
        ? "run as the agent's own account: one can read its key, which reaches queue operations of this node only"
        : `run as ${got.jobAccount}, outside of the agent's sandbox`,
    advice: got.jobAccount === null ? "An account of their own needs an install by root: docs/agent.md." : "",
  };
  const asked = askedBy(pid);
  if (asked === undefined) return [jobs];
  const lines = compareSandbox(asked, got);
  const isMissing = lines.some((line) => line.isMissing);
  return [
    jobs,
    {
      name: "sandbox",
      state: isMissing ? "warning" : "ok",
      text: lines.map(({ text }) => text).join("; "),
      advice: isMissing
        ? "In a user's unit, what changes the file system does nothing without PrivateUsers=yes: docs/agent.md."
        : "",
    },
  ];
}

/** The properties of the unit that this process belongs to; undefined when it is none of ours, or systemd does not tell. */
function askedBy(pid: number): Asked | undefined {
  const group = readOrEmpty(`/proc/${pid}/cgroup`);
  if (!group.includes(`/${UNIT}`)) return undefined;
  const scope = group.includes("/user@") ? ["--user"] : [];
  const show = ["show", UNIT, ...ASKED.map((name) => `--property=${name}`)];
  const { status, stdout } = spawnSync("systemctl", [...scope, ...show], { encoding: "utf8", timeout: SYSTEMCTL_MS });
  if (status !== 0) return undefined;
  return Object.fromEntries(stdout.split("\n").map((line) => line.split(/=(.*)/s).slice(0, 2))) as Asked;
}
