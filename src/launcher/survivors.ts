// SPDX-License-Identifier: Apache-2.0
// Which processes of a launch still run, seen from outside: by cgroup, by session (and with it the group), and by the mark in
// their environment. Rules: "empty" is what this look finds, never what a signal returned; what may be a stranger is named and
// never signalled.

import fs from "node:fs";
import { allPids, bootId, type Identity, identityOf, isAlive, readProcessStat } from "../std/process.ts";
import { parseCgroupPath } from "./cgroup.ts";
import { type LaunchSpec, MARK_VARIABLE, markOf, markStart } from "./spec.ts";

export type Survivor = {
  readonly pid: number;
  readonly name: string;
  readonly identity: Identity;
  /** Surely of this launch. Else it is in a session whose leader is gone, which may have been another one of that number. */
  readonly isProved: boolean;
};

/** What is known about a launch; the less, the less can be found. */
export type Trace = {
  readonly launchId: string;
  readonly identity: Identity | undefined;
  readonly spec: LaunchSpec | undefined;
  /** The path of the cgroup that the job was born in. */
  readonly cgroup: string | undefined;
};

type Belongs = "surely" | "by-session" | "not";

/** All of the launch but its shim. Nothing survives a boot. */
export function findSurvivors(trace: Trace): readonly Survivor[] {
  const { identity } = trace;
  if (identity !== undefined && identity.bootId !== bootId()) return [];
  const session = sessionOf(identity);
  const found = allPids().flatMap((pid) => {
    if (pid === process.pid || pid === session.shim || belongsTo(trace, session, pid) === "not") return [];
    // Again after its identity is known: between both looks it was one process, so what is found is said of that one.
    const known = identityOf(pid);
    const belongs = known === undefined ? "not" : belongsTo(trace, session, pid);
    return known === undefined || belongs === "not" ? [] : [{ pid, name: nameOf(pid), identity: known, belongs }];
  });
  // A shim that still lives has kept the number of its session all the while.
  const isOurs = identity !== undefined && isAlive(identity);
  return found.map(({ belongs, ...rest }) => ({ ...rest, isProved: belongs === "surely" || isOurs }));
}

type Session = { readonly id: number | undefined; readonly shim: number | undefined };

/** A session keeps its number taken while it has a member. So if another process has that pid, ours is empty. */
function sessionOf(identity: Identity | undefined): Session {
  if (identity === undefined) return { id: undefined, shim: undefined };
  const owner = readProcessStat(identity.pid);
  if (owner === undefined) return { id: identity.pid, shim: undefined };
  if (isAlive(identity)) return { id: identity.pid, shim: identity.pid };
  const isZombie = owner.state === "Z" && owner.startTicks === identity.startTicks;
  return { id: isZombie ? identity.pid : undefined, shim: undefined };
}

function belongsTo({ launchId, spec, cgroup }: Trace, session: Session, pid: number): Belongs {
  const stat = readProcessStat(pid);
  if (stat === undefined || "ZX".includes(stat.state)) return "not";
  if (cgroup !== undefined && isInCgroup(pid, cgroup)) return "surely";
  if (hasMark(pid, spec === undefined ? markStart(launchId) : `${markOf(spec)}\0`)) return "surely";
  return session.id !== undefined && stat.sessionId === session.id ? "by-session" : "not";
}

function isInCgroup(pid: number, cgroup: string): boolean {
  const own = parseCgroupPath(readProc(pid, "cgroup"));
  return own === cgroup || own?.startsWith(`${cgroup}/`) === true;
}

function hasMark(pid: number, mark: string): boolean {
  return `\0${readProc(pid, "environ")}`.includes(`\0${MARK_VARIABLE}=${mark}`);
}

/** Empty when the process is gone or another account's. */
function readProc(pid: number, file: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}

function nameOf(pid: number): string {
  return readProc(pid, "comm").trim();
}

/** For people: "sleep (pid 77)". */
export function describeSurvivors(survivors: readonly Survivor[]): string {
  return survivors.map(({ name, pid }) => `${name} (pid ${pid})`).join(", ");
}
