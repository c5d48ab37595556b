// SPDX-License-Identifier: Apache-2.0
// `holdfast launch`: reads the launch directories of this machine's node and matches them with what runs. It needs no agent, and
// it changes nothing but by `stop`. Rule: no directory is left out, whatever is wrong with it.

import fs from "node:fs";
import path from "node:path";
import type { LaunchStop, LaunchView } from "../cli/programs.ts";
import { nodeDirectory } from "../enrol/node-key.ts";
import { type Adopted, adoptLaunch } from "../launcher/adopt.ts";
import { describeEnding } from "../launcher/exit.ts";
import { launchesIn, listLaunches } from "../launcher/launch-files.ts";
import { describePurpose } from "../launcher/purpose.ts";
import { STOP_GRACE_MS, type Stopped, stopLaunch } from "../launcher/stop.ts";
import { describeSurvivors, type Survivor } from "../launcher/survivors.ts";
import { systemClock } from "../std/clock.ts";
import { Failure, messageOf } from "../std/errors.ts";
import { type Environment, rootFrom } from "./settings.ts";

type Root = { readonly root?: string };
type Named = Root & { readonly launchId: string };

export async function launchList(options: Root, env: Environment): Promise<readonly LaunchView[]> {
  const root = nodeDirectory(rootFrom(env, options.root));
  const views: LaunchView[] = [];
  for (const launchId of await listLaunches(root)) views.push(await viewOf(root, launchId));
  return views;
}

export async function launchShow(options: Named, env: Environment): Promise<LaunchView> {
  const root = nodeDirectory(rootFrom(env, options.root));
  return viewOf(root, await known(root, options.launchId));
}

/** Throws launch_survived, naming who still runs, launch_damaged, launch_newer, not_found. */
export async function launchStop(
  options: Named & { readonly graceMs?: number },
  env: Environment,
): Promise<LaunchStop> {
  const root = nodeDirectory(rootFrom(env, options.root));
  const launchId = await known(root, options.launchId);
  const adopted = await adoptLaunch(path.join(launchesIn(root), launchId), launchId);
  if (adopted.kind === "damaged")
    throw new Failure("launch_damaged", withSurvivors(adopted.problem, adopted.survivors));
  if (adopted.kind === "missing") throw new Failure("not_found", `there is no launch ${launchId} any more`);
  if (adopted.kind !== "alive" && adopted.kind !== "remains")
    return { launchId, kind: "already-ended", text: `nothing of it runs; it ${endOf(adopted)}` };
  const stopped = await stopLaunch(adopted.launch, systemClock, options.graceMs ?? STOP_GRACE_MS);
  return { launchId, kind: stopped.kind, text: textOf(launchId, stopped) };
}

function textOf(launchId: string, stopped: Stopped): string {
  switch (stopped.kind) {
    case "stopped":
      return `stopped${stopped.isForced ? " by SIGKILL, after its grace" : ""}; it ${describeEnding(stopped.exit)}`;
    case "already-ended":
      return `nothing of it runs; it ${describeEnding(stopped.exit)}`;
    case "gone":
      return "nothing of it runs any more; its shim was killed, so nobody saw the end";
    case "survived":
      throw new Failure("launch_survived", withSurvivors(`${launchId} does not end`, stopped.survivors));
    case "refused":
      throw new Failure("launch_damaged", `${launchId} does not say which process it is, so nothing was signalled`);
    default:
      return stopped satisfies never;
  }
}

function withSurvivors(problem: string, survivors: readonly Survivor[]): string {
  return survivors.length === 0 ? problem : `${problem}; still there: ${describeSurvivors(survivors)}`;
}

/** An id that has a directory; a path is none. */
async function known(root: string, launchId: string): Promise<string> {
  if ((await listLaunches(root)).includes(launchId)) return launchId;
  throw new Failure(
    "not_found",
    `there is no launch ${launchId} in ${launchesIn(root)}; holdfast launch list shows what there is`,
  );
}

async function viewOf(root: string, launchId: string): Promise<LaunchView> {
  const directory = path.join(launchesIn(root), launchId);
  try {
    return viewOfAdopted(directory, await adoptLaunch(directory, launchId));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const state = error.code === "launch_newer" ? "newer" : "unreadable";
    return { ...emptyView(launchId, directory), state, since: createdAt(directory), problem: messageOf(error) };
  }
}

function emptyView(launchId: string, directory: string): LaunchView {
  return {
    launchId,
    directory,
    state: "unreadable",
    purpose: null,
    pid: null,
    since: null,
    end: null,
    problem: null,
    survivors: [],
    argv: null,
    workingDirectory: null,
    limits: null,
    cgroup: null,
    exit: null,
  };
}

function viewOfAdopted(directory: string, adopted: Adopted): LaunchView {
  const { launchId, spec } = adopted;
  const isRunning = adopted.kind === "alive" || adopted.kind === "remains";
  const survivors = "survivors" in adopted ? adopted.survivors : [];
  return {
    ...emptyView(launchId, directory),
    state: adopted.kind === "alive" ? "running" : adopted.kind,
    purpose: spec === undefined ? null : describePurpose(spec.purpose),
    pid: adopted.kind === "alive" ? adopted.launch.identity.pid : null,
    since: spec === undefined ? createdAt(directory) : new Date(spec.createdAtMs).toISOString(),
    end: isRunning || "trace" in adopted ? null : endOf(adopted),
    problem: problemOf(adopted),
    survivors: survivors.map(({ pid, name }) => ({ pid, name })),
    argv: spec?.argv ?? null,
    workingDirectory: spec?.workingDirectory ?? null,
    limits: spec?.limits ?? null,
    cgroup: spec?.cgroup === undefined ? null : cgroupText(adopted),
    exit: adopted.kind === "ended" ? adopted.exit : null,
  };
}

function cgroupText({ spec }: Adopted): string | null {
  if (spec?.cgroup === undefined) return null;
  return spec.cgroup.kind === "own" ? spec.cgroup.path : `none: ${spec.cgroup.why}`;
}

function problemOf(adopted: Adopted): string | null {
  if (adopted.kind === "damaged") return adopted.problem;
  return adopted.kind === "remains" ? "its shim was killed, and some of it still runs" : null;
}

function endOf(adopted: Exclude<Adopted, { kind: "alive" | "remains" | "damaged" | "missing" }>): string {
  switch (adopted.kind) {
    case "ended":
      return describeEnding(adopted.exit);
    case "not-started":
      return "was never started";
    case "interrupted":
      return adopted.reason === "other-boot" ? "was interrupted: the machine was restarted" : "was interrupted";
    default:
      return adopted satisfies never;
  }
}

function createdAt(directory: string): string | null {
  return fs.statSync(directory, { throwIfNoEntry: false })?.birthtime.toISOString() ?? null;
}
