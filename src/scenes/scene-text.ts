// SPDX-License-Identifier: Apache-2.0
// The text of scenes.yaml: parsed once, checked against its schema, and asked afterwards where something stands. Faults name
// file, line and column.

import { Ajv, type ErrorObject } from "ajv";
import { type Document, isMap, isPair, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { type ScenesFile, scenesFile } from "../protocol/scenes-file-schema.ts";
import { type Fault, messageOf } from "../std/errors.ts";

const FAULTS_MAX = 50;
/** Anchors may be used; a bomb of them may not. */
const ALIASES_MAX = 100;

const check = new Ajv({
  allErrors: true,
  strict: false,
  logger: false,
  ownProperties: true,
  verbose: true,
}).compile<ScenesFile>(scenesFile);

type Step = string | number;

export class SceneText {
  readonly file: string;
  readonly #lines = new LineCounter();
  readonly #document: Document.Parsed;
  /** Undefined when there are faults. */
  readonly value: ScenesFile | undefined;
  readonly faults: readonly Fault[];

  constructor(source: string, file: string) {
    this.file = file;
    this.#document = parseDocument(source, { lineCounter: this.#lines, prettyErrors: false, version: "1.2" });
    const { errors } = this.#document;
    if (errors.length > 0) {
      this.faults = errors.slice(0, FAULTS_MAX).map(({ pos: [at], message }) => ({
        place: this.#at(at),
        problem: `is not YAML: ${message.split("\n")[0] ?? ""}`,
      }));
      return;
    }
    let value: unknown;
    try {
      value = this.#document.toJS({ maxAliasCount: ALIASES_MAX });
    } catch (error) {
      this.faults = [{ place: file, problem: `cannot be read: ${messageOf(error)}` }];
      return;
    }
    if (check(value)) {
      this.value = value;
      this.faults = [];
    } else this.faults = this.#schemaFaults(check.errors ?? []);
  }

  /** file:line:column of what these steps lead to, or of what is nearest to it. */
  place(steps: readonly Step[]): string {
    let node: unknown = this.#document.contents;
    let at = 0;
    for (const step of steps) {
      const next = stepInto(node, step);
      if (next === undefined) break;
      ({ node, at } = next);
    }
    return this.#at(at);
  }

  #at(offset: number): string {
    const { line, col } = this.#lines.linePos(offset);
    return `${this.file}:${Math.max(1, line)}:${Math.max(1, col)}`;
  }

  /** A union's own line says nothing beside the lines of its parts. */
  #schemaFaults(errors: readonly ErrorObject[]): readonly Fault[] {
    const told = errors.filter(({ keyword }) => keyword !== "anyOf" && keyword !== "oneOf");
    const faults = told.map((error) => this.#faultOf(error));
    const seen = new Set<string>();
    return faults
      .filter(({ place, problem }) => !seen.has(`${place} ${problem}`) && seen.add(`${place} ${problem}`) !== undefined)
      .slice(0, FAULTS_MAX);
  }

  #faultOf({ instancePath, keyword, params, message, data, parentSchema }: ErrorObject): Fault {
    const steps = instancePath
      .split("/")
      .slice(1)
      .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    const name = steps.at(-1) ?? "the file";
    switch (keyword) {
      case "additionalProperties": {
        const key = String(params["additionalProperty"]);
        return { place: this.place([...steps, key]), problem: `"${key}" is ${whyUnknown(parentSchema)}` };
      }
      case "required":
        return { place: this.place(steps), problem: `${name} lacks ${String(params["missingProperty"])}` };
      case "pattern":
        return {
          place: this.place(steps),
          problem: `"${String(data).slice(0, 80)}" is not what ${name} takes${exampleOf(parentSchema)}`,
        };
      default:
        return { place: this.place(steps), problem: `${name} ${message ?? "is not valid"}` };
    }
  }
}

/** Where names are free, it is one that cannot be used. */
function whyUnknown(schema: object | undefined): string {
  const patterns =
    schema !== undefined && "patternProperties" in schema ? Object.keys(schema.patternProperties ?? {}) : [];
  return patterns.length === 0 ? "not known here" : `no name that can be used here: it must match ${patterns.join()}`;
}

function exampleOf(schema: object | undefined): string {
  const description = schema !== undefined && "description" in schema ? String(schema.description) : "";
  const example = /(Such as .*|HOST:PORT)/.exec(description)?.[1];
  return example === undefined ? "" : `: ${example.replace(/^S/, "s").replace(/\.$/, "")}`;
}

/** The value behind a step, and where its key or item begins. */
function stepInto(node: unknown, step: Step): { readonly node: unknown; readonly at: number } | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
    if (!isPair(pair) || !isScalar(pair.key)) return undefined;
    return { node: pair.value, at: pair.key.range?.[0] ?? 0 };
  }
  if (!isSeq(node)) return undefined;
  const item = node.items[Number(step)];
  const range = isScalar(item) || isMap(item) || isSeq(item) ? item.range : undefined;
  return item === undefined ? undefined : { node: item, at: range?.[0] ?? 0 };
}
