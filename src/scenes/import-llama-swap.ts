// SPDX-License-Identifier: Apache-2.0
// scenes.yaml from the configuration of llama-swap (github.com/mostlygeek/llama-swap, config.yaml): its models become models,
// its groups and matrix sets become scenes. What has no counterpart is told, never dropped in silence.

import { parse, stringify } from "yaml";
import { Failure, messageOf } from "../std/errors.ts";

export type Imported = { readonly text: string; readonly notes: readonly string[] };

type Fields = Readonly<Record<string, unknown>>;

const FIRST_PORT = 5800;

/** Throws scenes_invalid. */
export function importLlamaSwap(source: string, file: string, listen: string): Imported {
  const config = read(source, file);
  const notes: string[] = [];
  const macros = Object.fromEntries(
    Object.entries(asFields(config["macros"])).map(([name, value]) => [name, String(value)]),
  );
  const startPort = Number.isInteger(config["startPort"]) ? Number(config["startPort"]) : FIRST_PORT;
  const names = new Map<string, string>();
  const models: Record<string, Fields> = {};
  for (const [id, model] of Object.entries(asFields(config["models"]))) {
    const name = nameFor(id, new Set(Object.keys(models)));
    names.set(id, name);
    if (name !== id) notes.push(`model ${id} is called ${name} here; its marker is still ${id}`);
    models[name] = modelOf({ id, model: asFields(model), port: startPort + names.size - 1, macros, notes });
  }
  if (names.size === 0) throw new Failure("scenes_invalid", `${file} names no models`);
  const scenes = scenesOf(config, names, notes);
  for (const key of Object.keys(config)) if (!KNOWN.has(key)) notes.push(`${key} has no counterpart and was left out`);
  const text = stringify({ version: 1, gateways: { main: { listen, http_status: true } }, models, scenes });
  return { text: `# Made from ${file} of llama-swap.\n${text}`, notes };
}

const KNOWN = new Set([
  "models",
  "groups",
  "matrix",
  "macros",
  "startPort",
  "healthCheckTimeout",
  "logLevel",
  "$schema",
]);

function read(source: string, file: string): Fields {
  let value: unknown;
  try {
    value = parse(source, { maxAliasCount: 100, prettyErrors: true });
  } catch (error) {
    throw new Failure("scenes_invalid", `${file} is not YAML: ${messageOf(error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Failure("scenes_invalid", `${file} is not a configuration of llama-swap`);
  return value as Fields;
}

const asFields = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const asTexts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);

type ModelInput = {
  readonly id: string;
  readonly model: Fields;
  readonly port: number;
  readonly macros: Readonly<Record<string, string>>;
  readonly notes: string[];
};

function modelOf({ id, model, port, macros, notes }: ModelInput): Fields {
  const { cmd, env, proxy, checkEndpoint, useModelName, ttl, cmdStop, aliases } = model;
  const fixed = /:(\d+)\/?$/.exec(typeof proxy === "string" ? proxy.replaceAll("${PORT}", String(port)) : "")?.[1];
  const expanded = expandMacros(String(cmd ?? ""), { ...macros, MODEL_ID: id });
  if (ttl !== undefined && ttl !== 0) notes.push(`ttl of ${id} was left out: a scene stays until another is activated`);
  if (cmdStop !== undefined) notes.push(`cmdStop of ${id} was left out: a stop is proved by its processes`);
  if (asTexts(aliases).length > 0) notes.push(`aliases of ${id} were left out: a gateway leads to one model`);
  if (useModelName !== undefined) notes.push(`useModelName of ${id} was left out: requests pass unchanged`);
  const variables = asTexts(env).map((line): [string, string] => {
    const at = line.indexOf("=");
    return [line.slice(0, at), line.slice(at + 1)];
  });
  const argv = splitCommand(expanded);
  const alias = argv[argv.findIndex((argument) => argument === "--alias" || argument === "-a") + 1];
  const marker = argv.some((argument) => argument === "--alias" || argument === "-a") ? (alias ?? id) : id;
  return {
    argv,
    port: Number(fixed ?? port),
    ...(checkEndpoint === "none" ? {} : { health: typeof checkEndpoint === "string" ? checkEndpoint : "/health" }),
    marker,
    ...(variables.length === 0 ? {} : { env: Object.fromEntries(variables) as Fields }),
  };
}

/** ${name} of macros; ${PORT} stays. */
function expandMacros(text: string, macros: Readonly<Record<string, string>>): string {
  let result = text;
  for (let depth = 0; depth < 10; depth++) {
    const next = result.replaceAll(/\$\{([\w-]+)\}/g, (whole, name: string) => macros[name] ?? whole);
    if (next === result) break;
    result = next;
  }
  return result;
}

/** As a shell would split it, without a shell: quotes, backslashes, lines that go on, comments of whole lines. */
export function splitCommand(text: string): readonly string[] {
  const lines = text.split("\n").filter((line) => !/^\s*#/.test(line));
  const words: string[] = [];
  for (const match of lines
    .join("\n")
    .replaceAll(/\\\n/g, " ")
    .matchAll(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/g))
    words.push(
      match[0].replaceAll(
        /\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/g,
        (_, escaped?: string, double?: string, single?: string) =>
          escaped ?? double?.replaceAll(/\\(["\\$`])/g, "$1") ?? single ?? "",
      ),
    );
  return words;
}

function scenesOf(
  config: Fields,
  names: ReadonlyMap<string, string>,
  notes: string[],
): Readonly<Record<string, Fields>> {
  const scenes: Record<string, Fields> = {};
  const add = (name: string, ids: readonly string[], from: string): void => {
    const models = ids.flatMap((id) => names.get(id) ?? []);
    const unknown = ids.filter((id) => !names.has(id));
    if (unknown.length > 0) notes.push(`${from} names ${unknown.join(", ")}, which is no model: left out`);
    const [first] = models;
    if (first !== undefined)
      scenes[nameFor(name, new Set(Object.keys(scenes)))] = { models, gateways: { main: first } };
  };
  for (const [name, group] of Object.entries(asFields(config["groups"]))) {
    const { swap = true, members } = asFields(group);
    // A group that swaps runs one of its members at a time.
    if (swap === false) add(name, asTexts(members), `group ${name}`);
    else for (const id of asTexts(members)) add(`${name}-${id}`, [id], `group ${name}`);
  }
  const { sets, vars } = asFields(config["matrix"]);
  const shorts = asFields(vars);
  for (const [name, expression] of Object.entries(asFields(sets)))
    for (const [index, ids] of combinations(String(expression)).entries())
      add(
        index === 0 ? name : `${name}-${index + 1}`,
        ids.map((id) => String(shorts[id] ?? id)),
        `set ${name}`,
      );
  const used = new Set(Object.values(scenes).flatMap(({ models }) => asTexts(models)));
  for (const name of names.values())
    if (!used.has(name))
      scenes[nameFor(name, new Set(Object.keys(scenes)))] = { models: [name], gateways: { main: name } };
  return scenes;
}

/** "(a | b) & c" gives [a, c] and [b, c]. */
export function combinations(expression: string): readonly (readonly string[])[] {
  const tokens = expression.match(/[()&|]|[^\s()&|]+/g) ?? [];
  let at = 0;
  const either = (): readonly (readonly string[])[] => {
    let found = both();
    while (tokens[at] === "|") {
      at++;
      found = [...found, ...both()];
    }
    return found;
  };
  const both = (): readonly (readonly string[])[] => {
    let found = one();
    while (tokens[at] === "&") {
      at++;
      const right = one();
      found = found.flatMap((a) => right.map((b) => [...a, ...b]));
    }
    return found;
  };
  const one = (): readonly (readonly string[])[] => {
    const token = tokens[at++];
    if (token !== "(") return token === undefined ? [] : [[token]];
    const inner = either();
    at++;
    return inner;
  };
  return either();
}

function nameFor(id: string, taken: ReadonlySet<string>): string {
  const base =
    id
      .replaceAll(/[^A-Za-z0-9._-]/g, "-")
      .replace(/^[^A-Za-z0-9]+/, "")
      .slice(0, 36) || "model";
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base}-${number}`;
    if (!taken.has(name)) return name;
  }
}
