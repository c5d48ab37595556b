// SPDX-License-Identifier: Apache-2.0
// Pieces that many schemas share. Every object refuses unknown fields; every string and list has a limit.

import Type, { type TObject, type TProperties } from "typebox";
import { ID_PATTERN } from "../std/id-pattern.ts";

export const id = (prefix: string) =>
  Type.String({ pattern: `^${prefix}_${ID_PATTERN}$`, description: `${prefix}_… id` });

/** An object that refuses unknown fields. */
export const exact = <Properties extends TProperties>(properties: Properties): TObject<Properties> =>
  Type.Object(properties, { additionalProperties: false });

export const nullable = <Schema extends Type.TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** RFC 3339, UTC, milliseconds. */
export const time = Type.String({
  format: "date-time",
  pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$",
  maxLength: 40,
  description: "RFC 3339 time",
});

/** A 64-bit counter travels as text: JavaScript numbers end at 2^53. */
export const counter = Type.String({ pattern: "^(0|[1-9]\\d{0,17})$", description: "64-bit counter as text" });

export const bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: "bytes" });

/** A name that people type: of a node, a token. */
export const name = Type.String({
  pattern: "^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$",
  description: "1 to 64 letters, digits, dots, dashes and underscores, not at the ends",
});

export const fault = exact({ place: Type.String(), problem: Type.String() });

export const errorBody = exact({
  code: Type.String(),
  message: Type.String(),
  requestId: Type.String(),
  details: Type.Optional(Type.Array(fault)),
});

/** A page of a list: pass nextCursor as cursor to go on; null at the end. */
export const page = <Schema extends Type.TSchema>(item: Schema) =>
  exact({ items: Type.Array(item), nextCursor: nullable(Type.String()) });
