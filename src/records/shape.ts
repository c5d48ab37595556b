// SPDX-License-Identifier: Apache-2.0
// The shape of a record's body: how a value becomes CBOR and back, every length bounded, unknown fields refused. Its
// description is text that a snapshot pins: a shape that changed is another version of its format.

import { Failure } from "../std/errors.ts";
import { type Cbor, CborFault, decodeCbor, encodeCbor } from "./cbor.ts";

export type Shape<Value> = {
  /** Canonical text of the shape. */
  readonly description: string;
  readonly toCbor: (value: Value) => Cbor;
  /** Throws CborFault naming the place. */
  readonly fromCbor: (value: Cbor, place: string) => Value;
};

export type ValueOf<S> = S extends Shape<infer Value> ? Value : never;

function fault(place: string, problem: string): never {
  throw new CborFault(`${place === "" ? "it" : place} ${problem}`);
}

/** Text of at most max UTF-16 units, without lone surrogates, which would not come back. */
export function text(max: number): Shape<string> {
  return {
    description: `text(${max})`,
    toCbor: (value) => value,
    fromCbor: (value, place) =>
      typeof value === "string" && value.length <= max && value.isWellFormed()
        ? value
        : fault(place, `is not a text of at most ${max}`),
  };
}

/** One of these texts. */
export function oneOf<const Choices extends readonly string[]>(choices: Choices): Shape<Choices[number]> {
  return {
    description: `oneOf(${choices.join("|")})`,
    toCbor: (value) => value,
    fromCbor: (value, place) =>
      choices.find((choice) => choice === value) ?? fault(place, "is not one of the known words"),
  };
}

/** Exactly this many bytes. */
export function bytes(length: number): Shape<Uint8Array> {
  return {
    description: `bytes(${length})`,
    toCbor: (value) => value,
    fromCbor: (value, place) =>
      value instanceof Uint8Array && value.length === length ? value : fault(place, `is not ${length} bytes`),
  };
}

/** At most this many bytes. */
export function blob(max: number): Shape<Uint8Array> {
  return {
    description: `blob(${max})`,
    toCbor: (value) => value,
    fromCbor: (value, place) =>
      value instanceof Uint8Array && value.length <= max ? value : fault(place, `is not at most ${max} bytes`),
  };
}

/** 0 to max, a whole number. */
export function count(max = Number.MAX_SAFE_INTEGER): Shape<number> {
  return {
    description: `count(${max})`,
    toCbor: (value) => value,
    fromCbor: (value, place) =>
      typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= max
        ? value
        : fault(place, `is not a whole number from 0 to ${max}`),
  };
}

const U64_MAX = 2n ** 64n - 1n;

/** 0 to 2^64 − 1. */
export const u64: Shape<bigint> = {
  description: "u64",
  toCbor: (value) => value,
  fromCbor: (value, place) => {
    const number = typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;
    return typeof number === "bigint" && number >= 0n && number <= U64_MAX ? number : fault(place, "is not a u64");
  },
};

export const flag: Shape<boolean> = {
  description: "flag",
  toCbor: (value) => value,
  fromCbor: (value, place) => (typeof value === "boolean" ? value : fault(place, "is not true or false")),
};

export function nullable<Value>(inner: Shape<Value>): Shape<Value | null> {
  return {
    description: `nullable(${inner.description})`,
    toCbor: (value) => (value === null ? null : inner.toCbor(value)),
    fromCbor: (value, place) => (value === null ? null : inner.fromCbor(value, place)),
  };
}

/** At most max items. */
export function list<Value>(item: Shape<Value>, max: number): Shape<readonly Value[]> {
  return {
    description: `list(${item.description}, ${max})`,
    toCbor: (value) => value.map((each) => item.toCbor(each)),
    fromCbor: (value, place) => {
      if (!Array.isArray(value)) return fault(place, "is not a list");
      if (value.length > max) return fault(place, `has more than ${max} items`);
      return (value as readonly Cbor[]).map((each, index) => item.fromCbor(each, `${place}/${index}`));
    },
  };
}

/** Shapes of any values: only as the constraint of a struct's fields. */
type AnyFields = { readonly [name: string]: { readonly description: string } };
type FieldsValue<F extends AnyFields> = { readonly [Name in keyof F]: ValueOf<F[Name]> };

/** These fields, all of them and no others. */
export function struct<const F extends AnyFields>(fields: F): Shape<FieldsValue<F>> {
  const shapes = Object.entries(fields) as [string, Shape<unknown>][];
  const names = shapes.map(([name]) => name).sort();
  return {
    description: `{${names.map((name) => `${name}: ${fields[name]?.description ?? ""}`).join(", ")}}`,
    toCbor: (value) =>
      Object.fromEntries(shapes.map(([name, shape]) => [name, shape.toCbor((value as Record<string, unknown>)[name])])),
    fromCbor: (value, place) => {
      if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Uint8Array)
        return fault(place, "is not a map");
      const given = Object.keys(value);
      const unknown = given.find((name) => !names.includes(name));
      if (unknown !== undefined) return fault(`${place}/${unknown}`, "is not known");
      const map = value as { readonly [name: string]: Cbor };
      const entries = shapes.map(([name, shape]) => {
        const item = map[name];
        if (item === undefined) return fault(`${place}/${name}`, "is missing");
        return [name, shape.fromCbor(item, `${place}/${name}`)] as const;
      });
      return Object.fromEntries(entries) as FieldsValue<F>;
    },
  };
}

export type Codec<Body> = {
  readonly description: string;
  /** Throws CborFault, or record_full, for a body that decode would refuse: a record that nobody can read is never written. */
  readonly encode: (body: Body) => Uint8Array;
  /** Throws CborFault. */
  readonly decode: (bytes: Uint8Array) => Body;
};

/** The body of a record: at most bytesMax bytes of strict CBOR in this shape. */
export function codecOf<Body>(shape: Shape<Body>, bytesMax: number): Codec<Body> {
  return {
    description: shape.description,
    encode: (body) => {
      const value = shape.toCbor(body);
      shape.fromCbor(value, "");
      const written = encodeCbor(value);
      if (written.length > bytesMax)
        throw new Failure("record_full", `it has ${written.length} bytes, more than ${bytesMax}`);
      return written;
    },
    decode: (given) => shape.fromCbor(decodeCbor(given, bytesMax), ""),
  };
}
