// SPDX-License-Identifier: Apache-2.0
// The agent's own upgrade. At its start it hands over to the release that the node is to run, in the same process; when the
// controller hands out another one it fetches, checks and tries that. While a release is on trial the kernel's alarm ends it
// unless it comes online: what hangs cannot be trusted to notice. Jobs and models run on throughout.

import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import {
  atStart,
  proved,
  readRelease,
  releaseDirectory,
  releasesDirectory,
  removeOtherReleases,
  returned,
  withNew,
  writeRelease,
} from "../enrol/release.ts";
import type { Client } from "../client/client.ts";
import type { Architecture } from "../protocol/enrol-schema.ts";
import { Failure, messageOf } from "../std/errors.ts";
import { makeDirectory, syncDirectory } from "../std/files.ts";
import { setAlarm } from "../std/linux.ts";
import type { Log } from "../std/log.ts";

const PROGRAM = "src/bin/holdfast.js";
const INSTALLED = "HOLDFAST_INSTALLED";
const BUNDLE_BYTES_MAX = 256 * 2 ** 20;
/** How long a new release has to be online; HOLDFAST_TRIAL_MS scales it down for tests. */
const TRIAL_MS = 60_000;
/** Of it the last part is spare: a release that does not hang says why before the alarm ends it. */
const SPARE = 0.1;

function trialMs(env: NodeJS.ProcessEnv): number {
  const given = Number(env["HOLDFAST_TRIAL_MS"] ?? TRIAL_MS);
  return Number.isInteger(given) && given >= 1000 ? Math.min(given, TRIAL_MS) : TRIAL_MS;
}

/** The directory that this program runs from. */
const home = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

/** SHA-256 of the bundle that this program came in; undefined in a checkout, which is never replaced by itself. */
export function ownRelease(root: string): string | undefined {
  if (path.dirname(home).startsWith(`${releasesDirectory(root)}/`)) return path.basename(path.dirname(home));
  try {
    const text = fs.readFileSync(path.join(path.dirname(home), "agent.sha256"), "utf8").trim();
    return /^[0-9a-f]{64}$/.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Hands over to the release that is to run, if it is another one; does not return then. Called before anything is opened. */
export function handOver(root: string, env: NodeJS.ProcessEnv, log: Log): void {
  // A release was chosen by the installed program, which counts the starts.
  const installed = path.dirname(path.dirname(path.dirname(installedProgram(env))));
  if (installed !== home) return;
  const { state, problem } = readRelease(root);
  if (problem !== undefined) log.warn({}, problem);
  const next = atStart(state);
  if (next !== state) writeRelease(root, next);
  if (next.failed.length > state.failed.length)
    log.error(
      { release: state.current, now: next.current ?? "installed" },
      "the new release was not online in its trial: back to the one before",
    );
  if (next.current === null) return;
  const wanted = releaseDirectory(root, next.current);
  if (!fs.existsSync(path.join(wanted, PROGRAM))) {
    log.error({ directory: wanted }, "the release that should run is not there: this one goes on");
    return;
  }
  if (next.trial !== null) setAlarm(Math.ceil(trialMs(env) / 1000));
  become(path.join(wanted, PROGRAM), env);
}

/** The same process, another program: nobody waits for a new pid, and what the agent is to its manager stays. */
function become(program: string, env: NodeJS.ProcessEnv): never {
  // The warning that execve is experimental helps nobody here.
  process.emitWarning = () => {};
  if (process.execve === undefined) throw new Failure("system_call_failed", "this runtime cannot replace itself");
  process.execve(process.execPath, [process.execPath, program, ...process.argv.slice(2)], {
    ...env,
    [INSTALLED]: installedProgram(env),
  });
  throw new Failure("system_call_failed", "the agent could not be replaced by its new release");
}

/** The program that the machine's service starts: the way back from any release. */
function installedProgram(env: NodeJS.ProcessEnv): string {
  return env[INSTALLED] ?? path.join(home, PROGRAM);
}

export type Fetched = { readonly version: string; readonly sha256: string };

export type UpgradeOptions = {
  readonly root: string;
  readonly log: Log;
  /** Streams the bundle. */
  readonly download: () => Promise<ReadableStream<Uint8Array>>;
};

/** Puts the bundle in its place and makes it the one to run; false when there is nothing to do. The caller then starts anew. */
export async function takeRelease(
  { root, log, download }: UpgradeOptions,
  { version, sha256 }: Fetched,
): Promise<boolean> {
  const own = ownRelease(root);
  if (own === undefined || own === sha256) return false;
  const { state } = readRelease(root);
  const next = withNew(state, sha256);
  if (next === undefined) return false;
  log.info({ version, sha256 }, "the controller hands out another release: fetching it");
  await unpack(root, sha256, download);
  writeRelease(root, next);
  removeOtherReleases(root, next);
  log.info({ version }, "starting anew with it, on trial; jobs and models run on");
  return true;
}

async function unpack(root: string, sha256: string, download: UpgradeOptions["download"]): Promise<void> {
  const target = path.join(releasesDirectory(root), sha256);
  const draft = `${target}.${process.pid}.new`;
  fs.rmSync(draft, { recursive: true, force: true });
  makeDirectory(releasesDirectory(root), 0o700);
  makeDirectory(draft, 0o700);
  try {
    const archive = path.join(draft, "agent.tar.gz");
    const hash = await save(await download(), archive);
    if (hash !== sha256) throw new Failure("bad_answer", `the release has the hash ${hash}, not ${sha256}`);
    const { status, stderr } = spawnSync("tar", ["-xzf", archive, "-C", draft], { encoding: "utf8" });
    if (status !== 0) throw new Failure("disk_full", `the release could not be unpacked: ${stderr.trim()}`);
    fs.rmSync(archive);
    fs.rmSync(target, { recursive: true, force: true });
    fs.renameSync(draft, target);
    syncDirectory(releasesDirectory(root));
  } finally {
    fs.rmSync(draft, { recursive: true, force: true });
  }
}

async function save(stream: ReadableStream<Uint8Array>, file: string): Promise<string> {
  const hash = createHash("sha256");
  const fd = fs.openSync(file, "wx", 0o600);
  let bytes = 0;
  try {
    for await (const piece of stream) {
      bytes += piece.length;
      if (bytes > BUNDLE_BYTES_MAX) throw new Failure("bad_answer", "the release is larger than any could be");
      hash.update(piece);
      fs.writeSync(fd, piece);
    }
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
  return hash.digest("hex");
}

export type ReleasesOptions = {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  readonly client: () => Client;
  /** By its operator, and with a credential that a new start finds again. */
  readonly isAllowed: boolean;
};

/** What the running agent does about releases: ends its own trial, and takes what the controller hands out. */
export class Releases implements Disposable {
  readonly #options: ReleasesOptions;
  readonly #anew = new AbortController();
  readonly #trial: NodeJS.Timeout | undefined;
  #isBusy = false;
  #isOnTrial: boolean;
  #said = "";

  constructor(options: ReleasesOptions) {
    this.#options = options;
    const { state } = readRelease(options.root);
    this.#isOnTrial =
      state.trial !== null && state.current !== null && releaseDirectory(options.root, state.current) === home;
    if (this.#isOnTrial) this.#trial = setTimeout(() => this.#giveUp(), trialMs(options.env) * (1 - SPARE));
  }

  /** Aborts when the agent is to leave its jobs and start anew. */
  get anew(): AbortSignal {
    return this.#anew.signal;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#trial);
  }

  /** A heartbeat was answered. */
  note(release: Fetched | null): void {
    this.#pass();
    if (release === null || this.#isBusy || this.#anew.signal.aborted) return;
    void this.#consider(release);
  }

  /** The controller does not understand this release any more: take its own, if that is allowed. */
  async takeOffered(): Promise<void> {
    const query = { arch: process.arch as Architecture };
    try {
      await this.#consider(await this.#options.client().call("nodeRelease", { query }));
    } catch (error) {
      this.#options.log.warn({ why: messageOf(error) }, "the controller's release could not be asked for");
    }
  }

  #pass(): void {
    if (!this.#isOnTrial) return;
    this.#isOnTrial = false;
    clearTimeout(this.#trial);
    setAlarm(0);
    const { root, log } = this.#options;
    writeRelease(root, proved(readRelease(root).state));
    log.info({ release: ownRelease(root) }, "this release is online: its trial is over");
  }

  #giveUp(): void {
    const { root, log } = this.#options;
    log.error({}, "this release was not online in time: going back to the one before");
    writeRelease(root, returned(readRelease(root).state));
    this.#anew.abort();
  }

  async #consider(release: Fetched): Promise<void> {
    const { root, log, client, isAllowed } = this.#options;
    const own = ownRelease(root);
    if (own === undefined || own === release.sha256) return;
    if (!isAllowed) {
      if (this.#said !== release.sha256)
        log.info(
          release,
          "the controller hands out another release: run the bootstrap script again, or allow --self-upgrade",
        );
      this.#said = release.sha256;
      return;
    }
    this.#isBusy = true;
    try {
      const download = () => client().download("agentFile", { query: { arch: process.arch as Architecture } });
      if (await takeRelease({ root, log, download }, release)) this.#anew.abort();
    } catch (error) {
      if (this.#said !== messageOf(error)) log.warn({ why: messageOf(error) }, "the new release could not be fetched");
      this.#said = messageOf(error);
    } finally {
      this.#isBusy = false;
    }
  }
}

/** The same command from the installed program, which hands over to whatever is to run now. */
export function startAnew(env: NodeJS.ProcessEnv): never {
  setAlarm(0);
  become(installedProgram(env), env);
}
