// SPDX-License-Identifier: Apache-2.0
// Values from a JSON schema of ours: one that the schema takes, and every place in it where something else could stand.
// For fuzzing by the route table: a new field is fuzzed without anybody thinking of it.

type Schema = {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly minItems?: number;
  readonly minLength?: number;
};

/** What the schema takes, every optional field included. known gives values for fields of these names. */
export function valueOf(schema: unknown, known: Readonly<Record<string, unknown>>, name = ""): unknown {
  const { type, properties, items, anyOf, enum: choices, ...rest } = schema as Schema;
  if (Object.hasOwn(known, name)) return known[name];
  if (rest.const !== undefined) return rest.const;
  if (choices !== undefined) return choices[0];
  if (anyOf !== undefined) return valueOf(anyOf[0], known, name);
  if (type === "object" && properties !== undefined)
    return Object.fromEntries(Object.entries(properties).map(([key, inner]) => [key, valueOf(inner, known, key)]));
  if (type === "object") return {};
  if (type === "array") return Array.from({ length: rest.minItems ?? 1 }, () => valueOf(items, known, name));
  if (type === "integer" || type === "number") return Math.max(rest.minimum ?? 0, 1);
  if (type === "boolean") return true;
  if (type === "string") return textOf(rest);
  return { any: "thing" };
}

function textOf({ pattern, format, minLength }: Schema): string {
  if (format === "date-time") return "2026-01-02T03:04:05Z";
  const id = /^\^([a-z]+)_/.exec(pattern ?? "");
  if (id !== null) return `${id[1]}_${"0".repeat(26)}`;
  const secret = /^\^(hf[a-z])_/.exec(pattern ?? "");
  if (secret !== null) return `${secret[1]}_${"A".repeat(43)}`;
  const exact = /\{(\d+)\}\$$/.exec(pattern ?? "");
  if (exact !== null) return "A".repeat(Number(exact[1]));
  if (pattern?.startsWith("^/") === true) return "/tmp";
  if (pattern?.startsWith("^(0|") === true) return "1";
  if (pattern?.includes("\\d{1,18}\\.") === true) return "1.1";
  return "abcdefghijkl".slice(0, Math.max(minLength ?? 1, 4));
}

export type Path = readonly (string | number)[];

/** Every place in a value, the whole first. */
export function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]))];
}

/** The JSON text of a value with the raw text at one place: raw may be what no JavaScript value can say, such as 1e400. */
export function textWith(value: unknown, path: Path, raw: string): string {
  const [key, ...rest] = path;
  if (key === undefined) return raw;
  if (Array.isArray(value))
    return `[${value.map((item, index) => (String(index) === String(key) ? textWith(item, rest, raw) : JSON.stringify(item))).join()}]`;
  const entries = Object.entries(value as Record<string, unknown>).map(
    ([name, item]) => `${JSON.stringify(name)}:${name === key ? textWith(item, rest, raw) : JSON.stringify(item)}`,
  );
  return `{${entries.join()}}`;
}
