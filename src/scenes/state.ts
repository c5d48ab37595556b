// SPDX-License-Identifier: Apache-2.0
// What a node remembers of its scenes: <root>/.kuda/state.yaml. Replaced as a whole, flushed, with the version before it kept
// beside it. Rules: keys that are not known are kept; a record that does not name one process is legacy and never signalled.

import fs from "node:fs";
import path from "node:path";
import { parse, stringify } from "yaml";
import { codeOf, messageOf } from "../std/errors.ts";
import { fileFailure, makeDirectory, syncDirectory } from "../std/files.ts";
import type { Identity, RecordedIdentity } from "../std/process.ts";

export type ModelRecord = {
  /** Of the shim that leads the model's session; undefined: a legacy record. */
  readonly identity: Identity | undefined;
  /** What is wrong with a record that names no process for certain. */
  readonly legacy: string | undefined;
  readonly port: number | undefined;
  /** Hash of the marker. */
  readonly marker: string;
  readonly launchId: string | undefined;
  /** Of the registry's model; undefined in foreign records. */
  readonly spec: string | undefined;
  /** Keys that are not ours. */
  readonly extra: Readonly<Record<string, unknown>>;
};

export type SceneError = {
  /** RFC 3339. */
  readonly at: string;
  readonly scene: string | null;
  readonly error: string;
  /** How the way back ended; null when there was none. */
  readonly restore: string | null;
};

export type SceneState = {
  readonly desired: string | null;
  readonly active: string | null;
  readonly lastKnownGood: string | null;
  readonly transition: string | null;
  readonly lastError: SceneError | null;
  /** Of the launch that was made last. */
  readonly generation: number;
  readonly models: ReadonlyMap<string, ModelRecord>;
  readonly extra: Readonly<Record<string, unknown>>;
};

export const EMPTY_STATE: SceneState = {
  desired: null,
  active: null,
  lastKnownGood: null,
  transition: null,
  lastError: null,
  generation: 0,
  models: new Map(),
  extra: {},
};

/** What changes once a scene is proved. */
export function committed({ active, lastKnownGood }: SceneState, scene: string): Partial<SceneState> {
  const before = active === scene ? lastKnownGood : (active ?? lastKnownGood);
  return { desired: scene, active: scene, transition: null, lastError: null, lastKnownGood: before };
}

export type StateRead =
  | { readonly kind: "none" }
  | { readonly kind: "read"; readonly state: SceneState }
  /** The file is torn, and the one before it was read: it may name an older wish, so nothing is switched or killed on it. */
  | { readonly kind: "fallback"; readonly state: SceneState; readonly why: string }
  | { readonly kind: "unreadable"; readonly why: string };

const FILE_BYTES_MAX = 1024 * 1024;

export const stateDirectory = (root: string): string => path.join(root, ".kuda");
const stateFile = (root: string): string => path.join(stateDirectory(root), "state.yaml");

export function readState(root: string): StateRead {
  const file = stateFile(root);
  const first = readOne(file);
  if (first.kind === "read" || (first.kind === "none" && !fs.existsSync(`${file}.bak`))) return first;
  const why = first.kind === "none" ? `${file} is gone` : first.why;
  const before = readOne(`${file}.bak`);
  if (before.kind === "read") return { kind: "fallback", state: before.state, why };
  return { kind: "unreadable", why };
}

type One =
  | { readonly kind: "none" }
  | { readonly kind: "read"; readonly state: SceneState }
  | { readonly kind: "bad"; readonly why: string };

function readOne(file: string): One {
  try {
    const { size } = fs.statSync(file);
    if (size > FILE_BYTES_MAX) return { kind: "bad", why: `${file} has ${size} bytes` };
    return parseState(fs.readFileSync(file, "utf8"), file);
  } catch (error) {
    return codeOf(error) === "ENOENT"
      ? { kind: "none" }
      : { kind: "bad", why: `${file} cannot be read: ${messageOf(error)}` };
  }
}

export function parseState(text: string, file: string): One {
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 0, prettyErrors: false });
  } catch (error) {
    return { kind: "bad", why: `${file} is damaged: ${messageOf(error)}` };
  }
  if (!isObject(value)) return { kind: "bad", why: `${file} is ${text.trim() === "" ? "empty" : "no mapping"}` };
  const {
    desired_scene,
    active_scene,
    last_known_good_scene,
    transition_scene,
    last_error,
    generation,
    models,
    ...extra
  } = value;
  const scenes = { desired_scene, active_scene, last_known_good_scene, transition_scene };
  for (const [key, scene] of Object.entries(scenes))
    if (!isName(scene)) return { kind: "bad", why: `${file} is damaged: ${key} is no name` };
  if (models !== undefined && models !== null && !isObject(models))
    return { kind: "bad", why: `${file} is damaged: models is no mapping` };
  const records = Object.entries(isObject(models) ? models : {}).map(
    ([name, record]): readonly [string, ModelRecord] => [name, recordOf(record)],
  );
  return {
    kind: "read",
    state: {
      desired: textOf(desired_scene),
      active: textOf(active_scene),
      lastKnownGood: textOf(last_known_good_scene),
      transition: textOf(transition_scene),
      lastError: errorOf(last_error),
      generation: Number.isSafeInteger(generation) ? Number(generation) : 0,
      models: new Map(records),
      extra,
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const isName = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === "string" && value !== "" && value.length <= 200);
const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

function errorOf(value: unknown): SceneError | null {
  if (typeof value === "string") return { at: "", scene: null, error: value, restore: null };
  if (!isObject(value)) return null;
  const { at, scene, error, restore } = value;
  return { at: textOf(at) ?? "", scene: textOf(scene), error: textOf(error) ?? "", restore: textOf(restore) };
}

const PID_MAX = 4_194_304;

function recordOf(value: unknown): ModelRecord {
  const fields = isObject(value) ? value : { pid: value };
  const { boot_id, pid, process_start_ticks, pidfd_inode, port, marker, launch_id, spec, ...extra } = fields;
  const ticks = typeof process_start_ticks === "number" ? String(process_start_ticks) : textOf(process_start_ticks);
  const legacy = legacyFault({ boot_id, pid, ticks });
  const inode = typeof pidfd_inode === "number" ? String(pidfd_inode) : textOf(pidfd_inode);
  const identity: RecordedIdentity = {
    bootId: textOf(boot_id) ?? undefined,
    pid: Number(pid),
    startTicks: ticks ?? undefined,
    ...(inode === null ? {} : { pidfdInode: inode }),
  };
  return {
    identity: legacy === undefined ? (identity as Identity) : undefined,
    legacy,
    port: Number.isSafeInteger(port) ? Number(port) : undefined,
    marker: textOf(marker) ?? "",
    launchId: textOf(launch_id) ?? undefined,
    spec: textOf(spec) ?? undefined,
    extra: legacy === undefined ? extra : { ...extra, ...(pid === undefined ? {} : { pid }) },
  };
}

type Recorded = { readonly boot_id: unknown; readonly pid: unknown; readonly ticks: string | null };

function legacyFault({ boot_id, pid, ticks }: Recorded): string | undefined {
  if (typeof pid !== "number" || !Number.isInteger(pid) || pid <= 1 || pid > PID_MAX)
    return `its pid is ${JSON.stringify(pid) ?? "missing"}, which is no process of a model`;
  if (typeof boot_id !== "string" || boot_id === "") return `its record names pid ${pid} without the boot`;
  return ticks === null || !/^\d+$/.test(ticks) ? `its record names pid ${pid} without its start` : undefined;
}

/** Throws disk_full, directory_unwritable, root_unusable. */
export function writeState(root: string, state: SceneState): void {
  const file = stateFile(root);
  try {
    makeDirectory(stateDirectory(root), 0o700);
    writeFlushed(`${file}.new`, stringify(plainOf(state)));
    if (readOne(file).kind === "read") {
      fs.rmSync(`${file}.bak.new`, { force: true });
      fs.linkSync(file, `${file}.bak.new`);
      fs.renameSync(`${file}.bak.new`, `${file}.bak`);
    }
    fs.renameSync(`${file}.new`, file);
    syncDirectory(stateDirectory(root));
  } catch (error) {
    throw fileFailure(file, error);
  }
}

function writeFlushed(file: string, text: string): void {
  const fd = fs.openSync(file, "w", 0o600);
  try {
    fs.writeFileSync(fd, text);
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

function plainOf(state: SceneState): Fields {
  const models = [...state.models].map(([name, record]) => [name, plainRecord(record)]);
  return {
    ...state.extra,
    version: 1,
    desired_scene: state.desired,
    active_scene: state.active,
    last_known_good_scene: state.lastKnownGood,
    transition_scene: state.transition,
    last_error: state.lastError,
    generation: state.generation,
    models: Object.fromEntries(models) as Fields,
  };
}

function plainRecord({ identity, port, marker, launchId, spec, extra }: ModelRecord): Fields {
  return {
    ...extra,
    ...(identity === undefined
      ? {}
      : {
          boot_id: identity.bootId,
          pid: identity.pid,
          process_start_ticks: identity.startTicks,
          ...(identity.pidfdInode === undefined ? {} : { pidfd_inode: identity.pidfdInode }),
        }),
    ...(port === undefined ? {} : { port }),
    marker,
    ...(launchId === undefined ? {} : { launch_id: launchId }),
    ...(spec === undefined ? {} : { spec }),
  };
}
