// SPDX-License-Identifier: Apache-2.0
// scenes.yaml as a file: listed, written for the first time, made from another program's configuration. Rule: a file that is
// there is never overwritten.

import fs from "node:fs";
import path from "node:path";
import type { SceneLine, SceneWritten } from "../cli/programs.ts";
import { importLlamaSwap } from "../scenes/import-llama-swap.ts";
import { FILE_NAME } from "../scenes/registry.ts";
import { firstScenes } from "../scenes/first-scenes.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { fileFailure, makeDirectory } from "../std/files.ts";
import { sceneRegistry, type SceneOptions } from "./scene.ts";
import { type Environment, rootFrom } from "./settings.ts";

export async function listScenes(options: SceneOptions, env: Environment): Promise<readonly SceneLine[]> {
  const { scenes } = sceneRegistry(options, env);
  return Promise.resolve(
    [...scenes.values()].map(({ name, models, gateways }) => ({
      name,
      models,
      gateways: [...gateways].map(([gateway, model]) => `${gateway} → ${model}`),
    })),
  );
}

export async function initScenes(
  options: SceneOptions & { readonly model?: string; readonly server: string; readonly listen: string },
  env: Environment,
): Promise<SceneWritten> {
  const model = options.model === undefined ? {} : { model: path.resolve(options.model) };
  const text = firstScenes({ server: options.server, listen: options.listen, ...model });
  return Promise.resolve({ file: writeNew(options, env, text), notes: [] });
}

export async function importScenes(
  options: SceneOptions & { readonly file: string; readonly listen: string },
  env: Environment,
): Promise<SceneWritten> {
  let source: string;
  try {
    source = fs.readFileSync(options.file, "utf8");
  } catch (error) {
    throw new Failure("usage", `${options.file} cannot be read: ${messageOf(error)}`);
  }
  const { text, notes } = importLlamaSwap(source, options.file, options.listen);
  return Promise.resolve({ file: writeNew(options, env, text), notes });
}

function writeNew(options: SceneOptions, env: Environment, text: string): string {
  const root = rootFrom(env, options.root);
  const file = path.join(root, FILE_NAME);
  makeDirectory(root, 0o755);
  try {
    fs.writeFileSync(file, text, { flag: "wx", mode: 0o644 });
  } catch (error) {
    if (codeOf(error) === "EEXIST") throw new Failure("usage", `${file} is there already; it is not overwritten`);
    throw fileFailure(file, error);
  }
  return file;
}
