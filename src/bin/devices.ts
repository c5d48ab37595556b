// SPDX-License-Identifier: Apache-2.0
// `holdfast devices status | protect | unprotect | check` on this machine. status and check change nothing.

import path from "node:path";
import type { DevicesSeen, DevicesWish, ProtectionRun } from "../cli/programs.ts";
import { readText } from "../devices/kernel-files.ts";
import { CHANGES_FILE, type Protection } from "../devices/protection.ts";
import { filesOf, foreignFiles, lastCommands, protect, unprotect } from "../devices/protection-apply.ts";
import { checkProtection } from "../devices/protection-check.ts";
import { type Facts, nodesOf, readFacts, rightsOf } from "../devices/protection-facts.ts";
import { DEFAULT_ACCOUNT, planProtection } from "../devices/protection-plan.ts";
import { scanGpus } from "../devices/scan.ts";
import type { Check } from "../protocol/access-schema.ts";
import { Failure } from "../std/errors.ts";
import { ownOpener, ownSurroundings } from "./surroundings.ts";

export async function devicesStatus(): Promise<DevicesSeen> {
  const [devices, facts] = await Promise.all([scanGpus(ownSurroundings()), readFacts()]);
  const { state } = facts;
  const known = state === undefined || "unreadable" in state ? undefined : state;
  const changes = (readText(CHANGES_FILE) ?? "").split("\n").filter((line) => line !== "");
  const healed = changes.filter((line) => line.split(" ")[1] === "heal");
  return {
    account: ownSurroundings().account,
    devices,
    protection:
      state !== undefined && "unreadable" in state
        ? "unreadable"
        : known === undefined
          ? "none"
          : known.isComplete
            ? "whole"
            : "half-done",
    group: known?.group ?? null,
    accounts: known?.accounts ?? [],
    nodes: nodesOf(facts.devices).map((node) => nodeSeen(path.join("/dev", node), facts)),
    healed: healed.length,
    lastHealed: healed.at(-1) ?? null,
  };
}

function nodeSeen(node: string, { groups }: Facts): DevicesSeen["nodes"][number] {
  const rights = rightsOf(node);
  if (rights === undefined) return { node, rights: null };
  const group = groups.find(({ gid }) => gid === rights.gid)?.name ?? String(rights.gid);
  return { node, rights: `${rights.mode.toString(8)} ${rights.uid === 0 ? "root" : rights.uid}:${group}` };
}

export async function protectDevices(wish: DevicesWish): Promise<ProtectionRun> {
  const { isDryRun, ...rest } = wish;
  const facts = await readFacts(wish.accounts ?? [DEFAULT_ACCOUNT]);
  const plan = planProtection(rest, facts);
  if ("faults" in plan)
    throw new Failure("devices_refused", "this machine's devices cannot be protected like this", {
      details: plan.faults,
    });
  const files = filesOf(plan);
  const foreign = foreignFiles(files);
  if (foreign.length > 0)
    throw new Failure("devices_refused", "files of somebody else are in the way", {
      details: foreign.map((place) => ({ place, problem: "it was not written by Holdfast: move it away" })),
    });
  if (isDryRun) {
    const commands = [...plan.first, ...lastCommands(plan.protection, facts)];
    return { files, commands, changes: [], protection: summary(plan.protection) };
  }
  requireRoot("protect");
  const changes = await protect(plan, facts);
  return { files: [], commands: [], changes, protection: summary(plan.protection) };
}

function summary({ group, accounts }: Protection): ProtectionRun["protection"] {
  return { group, accounts };
}

export async function unprotectDevices(): Promise<readonly string[]> {
  requireRoot("unprotect");
  return unprotect(await readFacts());
}

export async function checkDevices(options: {
  readonly accounts?: readonly string[];
  readonly denied?: readonly string[];
}): Promise<readonly Check[]> {
  requireRoot("check");
  const facts = await readFacts([...(options.accounts ?? []), ...(options.denied ?? []), "nobody"]);
  return checkProtection({ ...options, facts, opener: ownOpener() });
}

function requireRoot(verb: string): void {
  if (process.getuid?.() !== 0) throw new Failure("usage", `holdfast devices ${verb} needs root: run it with sudo`);
}
