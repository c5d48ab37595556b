// SPDX-License-Identifier: Apache-2.0
// Whether a model is ready, as a ladder whose failing rung is named: alive, listening with a socket of its own, healthy, the
// exact marker. Rule: an answer on the port is no proof; the socket must belong to the launch's own processes.

import fs from "node:fs";
import http from "node:http";
import type { Clock } from "../std/clock.ts";
import { describeProcess, ownerOf, processTree } from "../std/listeners.ts";
import { type Place, probeMarker } from "../std/marker.ts";
import { type Identity, isAlive } from "../std/process.ts";
import type { Model } from "./model.ts";
import { type Work, wentOn, workOf } from "./usage.ts";

export const RUNGS = ["alive", "listening", "health", "marker"] as const;
export type Rung = (typeof RUNGS)[number];

export type Ready =
  | { readonly kind: "ready" }
  /** fatal: looking again changes nothing. */
  | { readonly kind: "not-ready"; readonly rung: Rung; readonly why: string; readonly isFatal: boolean };

/** For one question to a server that may be busy. */
const PROBE_TIMEOUT_MS = 10_000;

/** One look. */
export async function lookReady(model: Model, identity: Identity): Promise<Ready> {
  const not = (rung: Rung, why: string, isFatal = false): Ready => ({ kind: "not-ready", rung, why, isFatal });
  if (!isAlive(identity)) return not("alive", "its process is gone", true);
  const { host, port } = model.place;
  const owner = ownerOf(host, port, processTree(identity.pid));
  if (owner.kind === "nobody") return not("listening", `nothing listens on ${host}:${port}`);
  if (owner.kind === "other") return not("listening", `port ${port} is held by ${holder(owner.pid)}`, true);
  if (model.health !== undefined) {
    const status = await statusOf(model.place, model.health);
    if (status !== "200") return not("health", `${model.health} answers ${status}`);
  }
  const probed = await probeMarker(model.place, model.marker, PROBE_TIMEOUT_MS);
  if (probed.kind === "silent") return not("marker", probed.why);
  if (probed.kind === "equal") return isAlive(identity) ? { kind: "ready" } : not("alive", "its process is gone", true);
  const said = JSON.stringify(probed.found) ?? "nothing";
  return not(
    "marker",
    `it says ${said.slice(0, 200)}, not ${JSON.stringify(model.marker.value)}`,
    probed.found !== undefined,
  );
}

function holder(pid: number | undefined): string {
  return pid === undefined ? "a process of another account" : describeProcess(pid);
}

function statusOf({ host, port }: Place, path: string): Promise<string> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const request = http.get({ host, port, path, agent: false, signal }, (response) => {
      response.resume();
      response.on("error", () => {});
      resolve(String(response.statusCode));
    });
    request.on("error", (error) => resolve(`not at all (${error.message})`));
  });
}

export type Waited =
  | { readonly kind: "ready"; readonly tookMs: number }
  | { readonly kind: "failed"; readonly why: string }
  | { readonly kind: "aborted" };

export type WaitOptions = {
  readonly model: Model;
  readonly identity: Identity;
  /** Its standard output and error: what is written there calls for a look, and is a sign of life. */
  readonly outputs: readonly string[];
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onRung: (rung: Rung, why: string) => void;
};

const POLL_FIRST_MS = 10;
const POLL_LAST_MS = 250;
/** Of the time that it has loaded: what loads for long may be seen ready a little later. */
const POLL_SHARE = 0.1;

/** Until the model is ready, fails, hangs or takes too long. */
export async function waitReady(options: WaitOptions): Promise<Waited> {
  const { model, identity, clock, signal, onRung } = options;
  const began = clock.monotonicMs();
  let moved = began;
  let work: Work = { cpuMs: 0, readBytes: 0 };
  let written = "";
  let rung = "";
  using outputs = new OutputWatch(options.outputs);
  for (;;) {
    const ready = await lookReady(model, identity);
    if (signal.aborted) return { kind: "aborted" };
    const now = clock.monotonicMs();
    if (ready.kind === "ready") return { kind: "ready", tookMs: now - began };
    const said = `${ready.rung}: ${ready.why}`;
    if (said !== rung) onRung(ready.rung, ready.why);
    rung = said;
    if (ready.isFatal) return { kind: "failed", why: `${ready.rung}: ${ready.why}` };
    const at = workOf(processTree(identity.pid));
    const sizes = outputs.sizes();
    if (sizes !== written || wentOn(work, at, now - moved)) {
      moved = now;
      work = at;
      written = sizes;
    }
    if (now - moved >= model.stallTimeoutMs)
      return {
        kind: "failed",
        why: `it hangs: no output, CPU time or bytes read for ${seconds(now - moved)} (${said})`,
      };
    if (now - began >= model.startTimeoutMs)
      return { kind: "failed", why: `not healthy in ${seconds(now - began)} (${said})` };
    const pollMs = Math.min(POLL_LAST_MS, Math.max(POLL_FIRST_MS, (now - began) * POLL_SHARE));
    await clock.sleep(pollMs, AbortSignal.any([signal, outputs.next()]));
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Output often tells the moment in which a server is ready. */
class OutputWatch implements Disposable {
  readonly #files: readonly string[];
  readonly #watchers: readonly fs.FSWatcher[];
  #wake = new AbortController();

  constructor(files: readonly string[]) {
    this.#files = files;
    this.#watchers = files.flatMap((file) => {
      try {
        const watcher = fs.watch(file, () => this.#wake.abort());
        watcher.on("error", () => watcher.close());
        return [watcher];
      } catch {
        // Without a notice the poll has to do.
        return [];
      }
    });
  }

  next(): AbortSignal {
    this.#wake = new AbortController();
    return this.#wake.signal;
  }

  sizes(): string {
    return this.#files.map((file) => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0).join(" ");
  }

  [Symbol.dispose](): void {
    for (const watcher of this.#watchers) watcher.close();
  }
}
