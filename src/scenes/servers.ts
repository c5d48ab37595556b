// SPDX-License-Identifier: Apache-2.0
// Starts, watches and stops model servers through the launcher. Rules: a model is in the state before its gate opens and leaves
// it only when it is proved that nothing of it runs; nothing is signalled that the launcher cannot prove to be ours.

import {
  type Adopted,
  describeEnding,
  type Ending,
  type Launch,
  type Launcher,
  launchIdOf,
  pathsIn,
} from "../launcher/launcher.ts";
import type { Clock } from "../std/clock.ts";
import { type Identity, isAlive } from "../std/process.ts";
import { describeSurvivors } from "../launcher/survivors.ts";
import { stopForeign, waitForeignGone } from "./foreign.ts";
import { readTail } from "./log-tail.ts";
import { waitReady, type Rung } from "./readiness.ts";
import { markerHash, type Model } from "./model.ts";
import type { ModelRecord } from "./state.ts";

/** Of each stream: bounded, whatever a model prints. */
const OUTPUT = { mode: "pump", fileBytes: 8 * 1024 * 1024, files: 3 } as const;

const HOOK_LIMITS = { wallTimeMs: 60_000 };
const ENDING_WAIT_MS = 1_000;

export type HookRun = {
  readonly argv: readonly string[];
  readonly scene: string;
  readonly which: "before" | "after";
  readonly generation: number;
};

export type StartOptions = {
  readonly model: Model;
  readonly scene: string;
  readonly generation: number;
  /** Durable before it returns: the gate opens after it. */
  readonly record: (record: ModelRecord) => Promise<void>;
};

export type OwnLaunch = { readonly launchId: string; readonly identity: Identity };

export type StartedModel = { readonly launch: Launch; readonly record: ModelRecord };

export class Servers {
  readonly #launcher: Launcher;
  readonly #clock: Clock;

  constructor(launcher: Launcher, clock: Clock) {
    this.#launcher = launcher;
    this.#clock = clock;
  }

  /** Undefined when this generation was used before: the next one is free. Throws what the launcher throws. */
  async start({ model, scene, generation, record }: StartOptions): Promise<StartedModel | undefined> {
    const purpose = {
      kind: "model",
      scene: coded(scene),
      model: coded(model.name),
      generation: String(generation),
    } as const;
    const prepared = await this.#launcher.prepare({
      purpose,
      argv: model.argv,
      environment: { ...model.environment, HOLDFAST_SCENE: scene, HOLDFAST_MODEL: model.name },
      ...(model.workingDirectory === undefined ? {} : { workingDirectory: model.workingDirectory }),
      output: OUTPUT,
    });
    if (prepared.kind === "already-launched") return undefined;
    const { launch } = prepared;
    const entry: ModelRecord = {
      identity: launch.identity,
      legacy: undefined,
      port: model.place.port,
      marker: markerHash(model.marker),
      launchId: launch.launchId,
      spec: model.spec,
      extra: {},
    };
    try {
      await record(entry);
    } catch (error) {
      await launch.abandon();
      await this.#launcher.remove(launch.launchId);
      throw error;
    }
    await launch.openGate();
    return { launch, record: entry };
  }

  /** Until it is ready; else why not, with what it printed last. */
  async waitReady(
    { launch }: StartedModel,
    model: Model,
    signal: AbortSignal,
    onRung: (rung: Rung, why: string) => void,
  ): Promise<string | undefined> {
    const over = new AbortController();
    const { stdout, stderr } = pathsIn(launch.directory);
    const ended = this.#launcher.waitEnding(launch, over.signal);
    const waiting = waitReady({
      model,
      identity: launch.identity,
      outputs: [stdout, stderr],
      clock: this.#clock,
      signal: AbortSignal.any([signal, over.signal]),
      onRung,
    });
    const end = ended.then((ending) => ({ kind: "ended" as const, ending }));
    const seen = await Promise.race([waiting, end]);
    // Its end may be seen before it is told: how it ended says more than that it is gone.
    const first =
      seen.kind === "failed" && !isAlive(launch.identity)
        ? await Promise.race([end, this.#clock.sleep(ENDING_WAIT_MS).then(() => seen)])
        : seen;
    over.abort();
    await Promise.all([waiting, ended]);
    if (first.kind === "ready") return undefined;
    if (first.kind === "aborted") return "it was given up";
    const why = first.kind === "failed" ? first.why : endedWords(first.ending);
    const tail = readTail([stderr, stdout]);
    return tail === "" ? why : `${why}; it printed last: ${tail}`;
  }

  /** Undefined once nothing of it runs; else why not. */
  async stop(record: ModelRecord, graceMs: number): Promise<string | undefined> {
    const { launchId, identity } = record;
    if (identity === undefined) return record.legacy ?? "its record names no process";
    if (launchId === undefined) return stopForeign(identity, this.#clock, graceMs);
    const adopted = await this.#launcher.adopt(launchId, identity);
    const left = await this.#end(adopted, graceMs);
    if (left !== undefined) return left;
    await this.#launcher.remove(launchId);
    return undefined;
  }

  async #end(adopted: Adopted, graceMs: number): Promise<string | undefined> {
    if (adopted.kind === "alive" || adopted.kind === "remains") {
      const stopped = await this.#launcher.stop(adopted.launch, { graceMs });
      if (stopped.kind === "survived") return `${describeSurvivors(stopped.survivors)} did not end`;
      return stopped.kind === "refused" ? `nothing was signalled: ${stopped.reason}` : undefined;
    }
    if (!("trace" in adopted) || adopted.survivors.length === 0) return undefined;
    const survivors = await this.#launcher.endUnclear(adopted.trace, graceMs);
    return survivors.length === 0 ? undefined : `${describeSurvivors(survivors)} did not end`;
  }

  /** Model launches of this node that are not in the state: of a life that died between its launch and its record. */
  async orphans(known: ReadonlySet<string>): Promise<readonly string[]> {
    return (await this.#listModels()).filter((launchId) => !known.has(launchId));
  }

  async #listModels(): Promise<readonly string[]> {
    const all = await this.#launcher.list();
    return all.filter((launchId) => launchId.startsWith("model-") && !launchId.startsWith(RESERVED));
  }

  /** Those that run. */
  async launches(): Promise<readonly OwnLaunch[]> {
    const adopted = await Promise.all((await this.#listModels()).map((launchId) => this.#launcher.adopt(launchId)));
    return adopted.flatMap((each) =>
      each.kind === "alive" ? [{ launchId: each.launch.launchId, identity: each.launch.identity }] : [],
    );
  }

  async endOrphan(launchId: string, graceMs: number): Promise<string | undefined> {
    const left = await this.#end(await this.#launcher.adopt(launchId), graceMs);
    if (left === undefined) await this.#launcher.remove(launchId);
    return left;
  }

  /** Resolves when the model's process has ended, with how; undefined when the signal aborted first. */
  async waitGone(record: ModelRecord, signal: AbortSignal): Promise<string | undefined> {
    const { launchId, identity } = record;
    if (identity === undefined) return undefined;
    if (launchId === undefined)
      return (await waitForeignGone(identity, this.#clock, signal)) ? "its process is gone" : undefined;
    const adopted = await this.#launcher.adopt(launchId, identity);
    if (adopted.kind === "alive" || adopted.kind === "remains") {
      const ending = await this.#launcher.waitEnding(adopted.launch, signal);
      return ending === undefined ? undefined : endedWords(ending);
    }
    if (adopted.kind === "ended") return endedWords(adopted.exit);
    return "its process is gone";
  }

  /** Undefined when the hook succeeded; else why not. */
  async runHook(hook: HookRun): Promise<string | undefined> {
    const { argv, scene, which, generation } = hook;
    const purpose = {
      kind: "model",
      scene: coded(scene),
      model: `_hook_${which}`,
      generation: String(generation),
    } as const;
    const environment = { HOLDFAST_SCENE: scene };
    const prepared = await this.#launcher.prepare({ purpose, argv, environment, output: OUTPUT, limits: HOOK_LIMITS });
    if (prepared.kind === "already-launched") return "it was started before";
    const { launch } = prepared;
    await launch.openGate();
    const ending = await this.#launcher.waitEnding(launch);
    const { stdout, stderr } = pathsIn(launch.directory);
    const tail = readTail([stderr, stdout]);
    await this.#launcher.remove(launch.launchId);
    if (ending?.kind === "exited" && ending.code === 0) return undefined;
    return `${endedWords(ending)}${tail === "" ? "" : `; it printed last: ${tail}`}`;
  }
}

/** Launches of ours that are no models. */
export const RESERVED = launchIdOf({ kind: "model", scene: "_gateway", model: "gateway", generation: "0" }).slice(
  0,
  -1,
);

function endedWords(ending: Ending | undefined): string {
  return ending === undefined ? "it was given up" : `it ended: it ${describeEnding(ending)}`;
}

/** A launch id has letters, digits and underscores; different names stay different. */
export function coded(name: string): string {
  return name.replaceAll(
    /[^A-Za-z0-9]/g,
    (character) => `_${character.codePointAt(0)?.toString(16).padStart(2, "0") ?? ""}`,
  );
}
