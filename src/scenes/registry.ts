// SPDX-License-Identifier: Apache-2.0
// scenes.yaml as decided values: every path, variable and name resolved, or every fault at once with file, line and column.
// Nothing here starts or asks anything. Rule: a value that is a secret stays out of argv and out of every text for people.

import fs from "node:fs";
import path from "node:path";
import type { FileMarker, FileModel, ScenesFile } from "../protocol/scenes-file-schema.ts";
import { codeOf, Failure, type Fault, messageOf } from "../std/errors.ts";
import { defaultMarker, type Marker } from "../std/marker.ts";
import { sizeOf } from "../std/units.ts";
import { argumentFaults } from "./arguments.ts";
import { type Environment, Expander, readEnvFile } from "./expand.ts";
import { type Model, specOf } from "./model.ts";
import { ModelFiles } from "./model-file.ts";
import { checkScenes, waitMsOf } from "./registry-check.ts";
import { SceneText } from "./scene-text.ts";

export const FILE_NAME = "scenes.yaml";
const FILE_BYTES_MAX = 1024 * 1024;
const START_TIMEOUT_MS = 30 * 60_000;
const STALL_TIMEOUT_MS = 2 * 60_000;
const STOP_GRACE_MS = 10_000;
const DRAIN_MS = 30_000;

export type Hooks = { readonly before?: readonly string[]; readonly after?: readonly string[] };

export type Scene = {
  readonly name: string;
  readonly models: readonly string[];
  /** Gateway to model. */
  readonly gateways: ReadonlyMap<string, string>;
  readonly hooks: Hooks;
};

export type Gateway = {
  readonly name: string;
  /** HOST:PORT. */
  readonly listen: string;
  readonly isHttpStatus: boolean;
  readonly drainMs: number;
};

export type Registry = {
  readonly file: string;
  readonly models: ReadonlyMap<string, Model>;
  readonly scenes: ReadonlyMap<string, Scene>;
  readonly gateways: ReadonlyMap<string, Gateway>;
  readonly floorBytes: number | undefined;
  /** Of models whose command cannot work on this machine now: programs, directories, files of weights. */
  readonly unready: ReadonlyMap<string, readonly Fault[]>;
};

/** env: of this process. files: what is known of files of weights; whoever reads again and again keeps it. */
export type RegistryOptions = {
  readonly env: Environment;
  readonly files?: ModelFiles;
  /** What cannot work now is only noted: a file that is being fetched for one model is no fault of those that run. */
  readonly isRunning?: boolean;
};

/** Throws scenes_missing and scenes_invalid, with all faults. */
export function readRegistry(root: string, options: RegistryOptions): Registry {
  const file = path.join(root, FILE_NAME);
  return parseRegistry(readFile(file), file, options);
}

function readFile(file: string): string {
  try {
    const { size } = fs.statSync(file);
    if (size > FILE_BYTES_MAX) throw invalid(file, [{ place: file, problem: `has ${size} bytes, more than 1 MiB` }]);
    return fs.readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Failure) throw error;
    if (codeOf(error) === "ENOENT") throw new Failure("scenes_missing", `there is no ${file}`);
    throw new Failure("scenes_invalid", `${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

function invalid(file: string, faults: readonly Fault[]): Failure {
  const count = faults.length === 1 ? "a fault" : `${faults.length} faults`;
  return new Failure("scenes_invalid", `${file} has ${count}; nothing was started`, { details: faults });
}

/** The same for a text. `file`: where it lies, for relative paths and for what people are told. */
export function parseRegistry(source: string, file: string, options: RegistryOptions): Registry {
  const { env, files = new ModelFiles(), isRunning = false } = options;
  const text = new SceneText(source, file);
  const written = text.value;
  if (written === undefined) throw invalid(file, text.faults);
  const faults: Fault[] = [];
  const secrets = secretsOf(written, text, faults);
  const unready = new Map<string, readonly Fault[]>();
  const models = new Map(
    Object.entries(written.models).map(([name, model]) => {
      const resolved = resolveModel({ name, model, text, faults, file, env, secrets });
      const noted = readyFaults(resolved, text, files);
      if (noted.length > 0) unready.set(name, noted);
      if (!isRunning) faults.push(...noted);
      return [name, resolved];
    }),
  );
  faults.push(...checkScenes(written, models, text));
  if (faults.length > 0) throw invalid(file, faults);
  const [scenes, gateways, floorBytes] = [scenesOf(written), gatewaysOf(written), bytesOf(written.floor)];
  return { file, models, scenes, gateways, floorBytes, unready };
}

function readyFaults(
  { name, argv, environment, workingDirectory }: Model,
  text: SceneText,
  files: ModelFiles,
): readonly Fault[] {
  const at = (...steps: readonly (string | number)[]): string => text.place(["models", name, ...steps]);
  return argumentFaults({ argv, environment, workingDirectory, at, files });
}

type ModelInput = {
  readonly name: string;
  readonly model: FileModel;
  readonly text: SceneText;
  readonly faults: Fault[];
  readonly file: string;
  readonly env: Environment;
  readonly secrets: Environment;
};

function resolveModel({ name, model, text, faults, file, env, secrets }: ModelInput): Model {
  const at = (...steps: readonly (string | number)[]): string => text.place(["models", name, ...steps]);
  const fault = (place: string, problem: string): void => void faults.push({ place, problem });
  const host = model.host ?? "127.0.0.1";
  const home = env["HOME"] ?? "/";
  const own = { PORT: String(model.port), HOST: host, MODEL: name, HOME: home };
  const expander = new Expander({ own, env, secrets, fault });
  const argv = model.argv.map((argument, index) => expander.argument(argument, at("argv", index)));
  const given = Object.entries(model.env ?? {}).map(([key, value]) => [key, expander.value(value, at("env", key))]);
  const named = (model.secrets ?? []).map((key, index): readonly [string, string] => {
    if (!Object.hasOwn(secrets, key)) fault(at("secrets", index), `env_file has no ${key}`);
    return [key, secrets[key] ?? ""];
  });
  const environment: Environment = Object.fromEntries([...given, ...named] as (readonly [string, string])[]);
  const base = path.dirname(file);
  const workingDirectory =
    model.cwd === undefined ? undefined : path.resolve(base, expander.path(model.cwd, at("cwd")));
  const marker = markerOf(model.marker);
  const spec = specOf({ argv, environment, workingDirectory, host, port: model.port, health: model.health, marker });
  return {
    name,
    argv,
    environment,
    workingDirectory,
    place: { host: askedHost(host), port: model.port },
    health: model.health,
    marker,
    memoryBytes: bytesOf(model.memory),
    startTimeoutMs: msOf(model.start_timeout, START_TIMEOUT_MS),
    stallTimeoutMs: msOf(model.stall_timeout, STALL_TIMEOUT_MS),
    stopGraceMs: msOf(model.stop_grace, STOP_GRACE_MS),
    spec,
  };
}

/** A listener on every address is asked on this machine's own. */
function askedHost(host: string): string {
  if (host === "0.0.0.0" || host === "localhost") return "127.0.0.1";
  return host === "::" || host === "[::]" ? "::1" : host.replace(/^\[|\]$/g, "");
}

function markerOf(marker: FileMarker): Marker {
  if (typeof marker === "string") return defaultMarker(marker);
  const { path: asked, pointer, value, generation } = marker;
  const usual = defaultMarker(value);
  return {
    path: asked ?? usual.path,
    pointer: pointer ?? usual.pointer,
    value,
    ...(generation === undefined ? {} : { generation }),
  };
}

function secretsOf(written: ScenesFile, text: SceneText, faults: Fault[]): Environment {
  if (written.env_file === undefined) return {};
  const read = readEnvFile(path.resolve(path.dirname(text.file), written.env_file));
  if (read.kind === "read") return read.values;
  faults.push(...read.problems.map((problem) => ({ place: text.place(["env_file"]), problem })));
  return {};
}

function scenesOf({ scenes, gateways = {} }: ScenesFile): ReadonlyMap<string, Scene> {
  const only = Object.keys(gateways).length === 1 ? Object.keys(gateways)[0] : undefined;
  return new Map(
    Object.entries(scenes).map(([name, { models, gateways: given, hooks = {} }]) => {
      const usual = only !== undefined && models.length === 1 ? { [only]: models[0] ?? "" } : {};
      return [name, { name, models, gateways: new Map(Object.entries(given ?? usual)), hooks }];
    }),
  );
}

function gatewaysOf({ gateways = {} }: ScenesFile): ReadonlyMap<string, Gateway> {
  return new Map(
    Object.entries(gateways).map(([name, { listen, http_status: isHttpStatus = false, drain }]) => [
      name,
      { name, listen, isHttpStatus, drainMs: msOf(drain, DRAIN_MS) },
    ]),
  );
}

const bytesOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : sizeOf(text));
const msOf = (text: string | undefined, usual: number): number =>
  text === undefined ? usual : (waitMsOf(text) ?? usual);

/** The scene of this name. Throws scene_unknown, naming those that there are. */
export function findScene(registry: Registry, name: string): Scene {
  const scene = registry.scenes.get(name);
  if (scene !== undefined) return scene;
  const known = [...registry.scenes.keys()].join(", ");
  throw new Failure("scene_unknown", `there is no scene ${name} in ${registry.file}; there are ${known}`);
}

/** In the order of the scene. */
export function modelsOf(registry: Registry, scene: Scene): readonly Model[] {
  return scene.models.flatMap((name) => registry.models.get(name) ?? []);
}
