// SPDX-License-Identifier: Apache-2.0
// The context file: which controller the command line talks to, and with which token. 0600, written whole or not at all;
// a file that others can read is refused, and every fault in it is named with its place.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { codeOf, Failure, type Fault } from "../std/errors.ts";
import { fileFailure, makeDirectory } from "../std/files.ts";

export type Context = {
  readonly url: string;
  readonly token: string;
  /** The authority that signed the controller's certificate, PEM; absent where the system's authorities are enough. */
  readonly ca?: string;
};
export type Contexts = { readonly current: string; readonly contexts: Readonly<Record<string, Context>> };

type Environment = Readonly<Record<string, string | undefined>>;

export function contextFileFrom(env: Environment): string {
  const given = env["HOLDFAST_CONTEXT_FILE"];
  if (given !== undefined && given !== "") return path.resolve(given);
  const config = env["XDG_CONFIG_HOME"];
  return path.join(
    config !== undefined && config !== "" ? config : path.join(env["HOME"] ?? os.homedir(), ".config"),
    "holdfast",
    "contexts.json",
  );
}

/** Undefined when there is no file. */
export function readContexts(file: string): Contexts | undefined {
  let text: string;
  try {
    const mode = fs.statSync(file).mode & 0o777;
    if ((mode & 0o077) !== 0) {
      throw new Failure(
        "context_invalid",
        `${file} can be read by others (mode ${mode.toString(8)}) and holds a token: run chmod 600 ${file}`,
      );
    }
    text = fs.readFileSync(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw fileFailure(file, error);
  }
  return parse(file, text);
}

export function readContext(file: string, name: string): Context | undefined {
  return own(readContexts(file)?.contexts, name);
}

/** A name such as constructor is no context because every object has one. */
function own<Value>(entries: Readonly<Record<string, Value>> = {}, name: string): Value | undefined {
  return Object.hasOwn(entries, name) ? entries[name] : undefined;
}

/** Adds or replaces one context and makes it the current one; the others stay. */
export function writeContext(file: string, name: string, context: Context): void {
  const known = readContexts(file);
  writeContexts(file, {
    current: name,
    contexts: { ...known?.contexts, [name]: context },
  });
}

export function useContext(file: string, name: string): void {
  const known = readContexts(file);
  if (known === undefined || own(known.contexts, name) === undefined) {
    const names = Object.keys(known?.contexts ?? {});
    throw new Failure(
      "not_found",
      `there is no context ${name}${names.length === 0 ? "" : `; there are ${names.join(", ")}`}`,
    );
  }
  writeContexts(file, { ...known, current: name });
}

function writeContexts(file: string, contexts: Contexts): void {
  const partial = `${file}.${process.pid}`;
  try {
    makeDirectory(path.dirname(file), 0o700);
    fs.writeFileSync(partial, `${JSON.stringify(contexts, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    fs.renameSync(partial, file);
  } catch (error) {
    fs.rmSync(partial, { force: true });
    throw fileFailure(file, error);
  }
}

function parse(file: string, text: string): Contexts {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Failure("context_invalid", `${file} is not JSON`, { cause: error });
  }
  const faults: Fault[] = [];
  const contexts: [string, Context][] = [];
  const root = record(value, "/", faults, ["current", "contexts"]);
  for (const [name, entry] of Object.entries(record(root["contexts"], "/contexts", faults))) {
    const { url, token, ca } = record(entry, `/contexts/${name}`, faults, ["url", "token", "ca"]);
    if (typeof url !== "string" || !/^https?:\/\/[^/]+\/?$/.test(url))
      faults.push({ place: `/contexts/${name}/url`, problem: "must be an address such as http://127.0.0.1:7440" });
    if (typeof token !== "string" || !/^hft_[\w-]{43}$/.test(token))
      faults.push({ place: `/contexts/${name}/token`, problem: "must be a token (hft_…)" });
    if (ca !== undefined && (typeof ca !== "string" || !ca.includes("BEGIN CERTIFICATE")))
      faults.push({ place: `/contexts/${name}/ca`, problem: "must be a certificate in PEM" });
    contexts.push([name, { url: String(url), token: String(token), ...(ca === undefined ? {} : { ca: String(ca) }) }]);
  }
  const current = root["current"];
  if (typeof current !== "string" || !contexts.some(([name]) => name === current))
    faults.push({ place: "/current", problem: "must name one of the contexts" });
  if (faults.length > 0)
    throw new Failure("context_invalid", `${file} has ${faults.length} fault${faults.length > 1 ? "s" : ""}`, {
      details: faults,
    });
  return { current: String(current), contexts: Object.fromEntries(contexts) };
}

function record(value: unknown, place: string, faults: Fault[], known?: readonly string[]): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    faults.push({ place, problem: "must be an object" });
    return {};
  }
  for (const key of Object.keys(value)) {
    if (known !== undefined && !known.includes(key))
      faults.push({ place: `${place === "/" ? "" : place}/${key}`, problem: "is not known here" });
  }
  return { ...value };
}
