// SPDX-License-Identifier: Apache-2.0
// Which release of the agent this node runs: the one that was installed, or one that it fetched from its controller since.
// Rules: a release is on trial until the controller has answered one of its heartbeats; one that fails its trial is never
// tried again; whatever the file says, the installed one is there and works.

import fs from "node:fs";
import path from "node:path";
import { Failure } from "../std/errors.ts";
import { nodeDirectory } from "./node-key.ts";
import { readPrivateFile, writePrivateFile } from "./private-file.ts";

const FAILED_MAX = 32;

/** Releases are named by the SHA-256 of their bundle, hexadecimal. null: the installed one. */
export type ReleaseState = {
  /** The one to run. */
  readonly current: string | null;
  readonly previous: string | null;
  /** on trial: it was never online yet. starts: how often it was started so. */
  readonly trial: { readonly starts: number } | null;
  readonly failed: readonly string[];
};

export const installedOnly: ReleaseState = { current: null, previous: null, trial: null, failed: [] };

/** What to run at a start, and what to write down first. Pure. */
export function atStart(state: ReleaseState): ReleaseState {
  if (state.current === null || state.trial === null) return state;
  // It was started before and did not come as far as a heartbeat: it crashed, hung, or was ended by its alarm.
  if (state.trial.starts > 0) return returned(state);
  return { ...state, trial: { starts: state.trial.starts + 1 } };
}

/** The release is on trial from here on; undefined: it failed before, or runs already. Pure. */
export function withNew(state: ReleaseState, sha256: string): ReleaseState | undefined {
  if (state.current === sha256 || state.failed.includes(sha256)) return undefined;
  return { ...state, current: sha256, previous: state.current, trial: { starts: 0 } };
}

/** Its first heartbeat was answered. Pure. */
export function proved(state: ReleaseState): ReleaseState {
  return { ...state, trial: null };
}

/** Back to the one before. Pure. */
export function returned(state: ReleaseState): ReleaseState {
  const failed = state.current === null ? state.failed : [...state.failed, state.current].slice(-FAILED_MAX);
  return { current: state.previous, previous: null, trial: null, failed };
}

export function releasesDirectory(root: string): string {
  return path.join(nodeDirectory(root), "releases");
}

/** The directory of a release; its program is src/bin/holdfast.js below it. */
export function releaseDirectory(root: string, sha256: string): string {
  return path.join(releasesDirectory(root), sha256, "holdfast");
}

const stateFile = (root: string): string => path.join(nodeDirectory(root), "release.json");

/** A damaged file means the installed release, and is told: a node that does not start helps nobody. */
export function readRelease(root: string): { readonly state: ReleaseState; readonly problem?: string } {
  const file = stateFile(root);
  const text = readPrivateFile(file);
  if (text === undefined) return { state: installedOnly };
  try {
    return { state: parse(JSON.parse(text)) };
  } catch (error) {
    return { state: installedOnly, problem: `${file} is not readable (${String(error)}): the installed release runs` };
  }
}

export function writeRelease(root: string, state: ReleaseState): void {
  writePrivateFile(stateFile(root), `${JSON.stringify(state, undefined, 2)}\n`);
}

function parse(value: unknown): ReleaseState {
  const fields = new Map(Object.entries(value as object));
  const sha = (name: string): string | null => {
    const given: unknown = fields.get(name);
    if (given === null || (typeof given === "string" && /^[0-9a-f]{64}$/.test(given))) return given;
    throw new Failure("config_invalid", `${name} is no release`);
  };
  const trial: unknown = fields.get("trial");
  const failed: unknown = fields.get("failed");
  const starts: unknown = trial === null ? 0 : (trial as { starts?: unknown }).starts;
  if (typeof starts !== "number" || !Array.isArray(failed) || !failed.every((name) => typeof name === "string"))
    throw new Failure("config_invalid", "trial or failed is not what it should be");
  return { current: sha("current"), previous: sha("previous"), trial: trial === null ? null : { starts }, failed };
}

/** All but these are taken away: a disk of a node is not an archive. */
export function removeOtherReleases(root: string, state: ReleaseState): void {
  const kept = new Set([state.current, state.previous]);
  if (!fs.existsSync(releasesDirectory(root))) return;
  for (const name of fs.readdirSync(releasesDirectory(root)))
    if (!kept.has(name)) fs.rmSync(path.join(releasesDirectory(root), name), { recursive: true, force: true });
}
