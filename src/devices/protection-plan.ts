// SPDX-License-Identifier: Apache-2.0
// What a protection would do to this machine, decided from facts alone. Rule: it refuses as a whole, with all reasons at once,
// what would let somebody in who was not declared or lock somebody out who was not asked.

import type { Fault } from "../std/errors.ts";
import { type Facts, membersOf } from "./protection-facts.ts";
import type { Guarded, Protection } from "./protection.ts";

export type Wish = {
  /** The first is the agent's; undefined: as declared before, else holdfast. */
  readonly accounts?: readonly string[];
  readonly group?: string;
  readonly deniedUnits?: readonly string[];
  readonly isModprobeLocked?: boolean;
  readonly isDesktopLocked?: boolean;
};

export const DEFAULT_ACCOUNT = "holdfast";

export type Command = { readonly argv: readonly string[]; readonly why: string };

export type Plan = {
  readonly protection: Protection;
  /** The number of its group; undefined while it is still to be made. */
  readonly gid: number | undefined;
  /** Accounts and groups, before the files are written. */
  readonly first: readonly Command[];
};

export type Planned = Plan | { readonly faults: readonly Fault[] };

export function planProtection(wish: Wish, facts: Facts): Planned {
  const { state } = facts;
  if (state !== undefined && "unreadable" in state)
    return {
      faults: [
        { place: "/etc/holdfast/devices.json", problem: `${state.unreadable}: run holdfast devices unprotect first` },
      ],
    };
  const accounts = wish.accounts ?? state?.accounts ?? [DEFAULT_ACCOUNT];
  const groupName = wish.group ?? state?.group ?? defaultGroup(facts.devices);
  const isDesktopLocked = wish.isDesktopLocked ?? state?.isDesktopLocked ?? false;
  const deniedUnits = wish.deniedUnits ?? state?.deniedUnits ?? [];
  const isModprobeLocked = wish.isModprobeLocked ?? state?.isModprobeLocked ?? false;
  const faults = [
    ...whyNothing(facts.devices),
    ...accounts.flatMap((name) => whyNoAccount(name, facts)),
    ...whyNotGroup(groupName, accounts, facts),
    ...whyNotGroupChange(groupName, state),
    ...(isDesktopLocked ? [] : facts.desktop.filter((name) => !accounts.includes(name)).map(whyNotDesktop)),
    ...deniedUnits.filter((unit) => !/^[\w@.:-]+\.service$/.test(unit)).map(whyNoUnit),
    ...(isModprobeLocked ? whyNoLock(facts) : []),
  ];
  if (faults.length > 0) return { faults };
  const group = facts.groups.find(({ name }) => name === groupName);
  const inGroup = group === undefined ? [] : membersOf(group, facts.accounts);
  const missing = accounts.filter((name) => !inGroup.includes(name));
  const dropped = (state?.added ?? []).filter((name) => !accounts.includes(name) && inGroup.includes(name));
  const protection: Protection = {
    version: 1,
    isComplete: false,
    group: groupName,
    hasMadeGroup: state?.hasMadeGroup ?? group === undefined,
    accounts,
    added: [...new Set([...(state?.added ?? []).filter((name) => accounts.includes(name)), ...missing])],
    devices: facts.devices,
    deniedUnits,
    isModprobeLocked,
    isDesktopLocked,
    before: { ...facts.rights, ...state?.before },
  };
  const first: readonly Command[] = [
    ...(group === undefined
      ? [{ argv: ["groupadd", "--system", groupName], why: `makes the group ${groupName}` }]
      : []),
    ...missing.map((name) => ({ argv: ["usermod", "-aG", groupName, name], why: `puts ${name} into ${groupName}` })),
    ...dropped.map((name) => ({ argv: ["gpasswd", "-d", name, groupName], why: `takes ${name} out of ${groupName}` })),
  ];
  return { protection, gid: group?.gid, first };
}

/** NVIDIA's nodes are video's by custom, those of the others render's. */
function defaultGroup(devices: readonly Guarded[]): string {
  return devices.some(({ vendor }) => vendor === "nvidia") ? "video" : "render";
}

function whyNothing(devices: readonly Guarded[]): readonly Fault[] {
  if (devices.length > 0) return [];
  return [{ place: "devices", problem: "the kernel shows no GPU with a driver: there is nothing to protect" }];
}

function whyNoAccount(name: string, { accounts }: Facts): readonly Fault[] {
  if (name === "root") return [{ place: "--account root", problem: "root gets to every device anyway" }];
  if (accounts.some((account) => account.name === name)) return [];
  return [{ place: `--account ${name}`, problem: "there is no such account on this machine" }];
}

function whyNotGroup(name: string, accounts: readonly string[], facts: Facts): readonly Fault[] {
  if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(name) || name === "root")
    return [{ place: `--group ${name}`, problem: "that is no name of a group for this" }];
  if (facts.devices.some(({ isJetson }) => isJetson) && name !== "video")
    return [{ place: `--group ${name}`, problem: "on a Jetson it is video, by NVIDIA's own rules" }];
  const group = facts.groups.find((one) => one.name === name);
  if (group === undefined) return [];
  // Those that an earlier protection put in and this one drops are taken out.
  const added = facts.state === undefined || "unreadable" in facts.state ? [] : facts.state.added;
  const strangers = membersOf(group, facts.accounts).filter(
    (member) => ![...accounts, ...added, "root"].includes(member),
  );
  return strangers.map((member) => ({
    place: `group ${name}`,
    problem: `${member} is in it and was not declared: --account ${member}, or another group, which is made: --group holdfast-gpu`,
  }));
}

function whyNotGroupChange(name: string, state: Protection | undefined): readonly Fault[] {
  if (state === undefined || state.group === name) return [];
  return [{ place: `--group ${name}`, problem: `it is ${state.group} now: run holdfast devices unprotect first` }];
}

function whyNotDesktop(name: string): Fault {
  return {
    place: "desktop",
    problem: `${name} sits at this machine's desktop and would lose the GPU: --account ${name} keeps it, --lock-desktop accepts it`,
  };
}

function whyNoUnit(unit: string): Fault {
  return { place: `--deny-unit ${unit}`, problem: "that is no name of a service, such as web.service" };
}

function whyNoLock({ modprobe }: Facts): readonly Fault[] {
  if (modprobe === undefined) return [{ place: "--lock-modprobe", problem: "nvidia-modprobe is not installed" }];
  if (modprobe.isDebian) return [];
  return [
    {
      place: "--lock-modprobe",
      problem: `dpkg-statoverride is not there, and without it the next update undoes it: chmod 4750 ${modprobe.path} by hand`,
    },
  ];
}
