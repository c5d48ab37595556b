// SPDX-License-Identifier: Apache-2.0
// Strict deterministic CBOR (RFC 8949 § 4.2): one value has one text, and any other text is refused. Maps, arrays, text,
// bytes, integers, booleans and null; no floats, tags, undefined or indefinite lengths; nesting and length are bounded
// before anything is built.

import { decode, encode } from "cborg";

/** How deep a value may nest. */
export const CBOR_DEPTH_MAX = 16;

export type Cbor =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly Cbor[]
  | { readonly [key: string]: Cbor };

/** What is wrong with bytes that came from outside. */
export class CborFault extends Error {
  override readonly name = "CborFault";
}

/** Throws CborFault for a value that decodeCbor would refuse: what was written can be read. */
export function encodeCbor(value: Cbor): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = encode(value);
  } catch (error) {
    throw new CborFault("cannot be written as CBOR", { cause: error });
  }
  scan(bytes);
  return bytes;
}

/** Throws CborFault for whatever is not the one encoding of one value of at most bytesMax bytes. */
export function decodeCbor(bytes: Uint8Array, bytesMax: number): Cbor {
  if (bytes.length > bytesMax) throw new CborFault(`has ${bytes.length} bytes, more than ${bytesMax}`);
  scan(bytes);
  let value: Cbor;
  try {
    value = decode(bytes, {
      strict: true,
      allowIndefinite: false,
      allowUndefined: false,
      allowInfinity: false,
      allowNaN: false,
      allowBigInt: true,
      rejectDuplicateMapKeys: true,
    }) as Cbor;
  } catch (error) {
    throw new CborFault("is not CBOR", { cause: error });
  }
  // Key order, bad UTF-8 and longer forms than needed: the same value again gives other bytes.
  const again = encode(value);
  if (Buffer.compare(again, bytes) !== 0) throw new CborFault("is not in its deterministic form");
  return value;
}

/** Walks the heads without building anything: a bomb of nested arrays costs its own length. */
function scan(bytes: Uint8Array): void {
  const left: number[] = [1];
  let at = 0;
  while (left.length > 0) {
    const top = left.length - 1;
    if ((left[top] ?? 0) === 0) {
      left.pop();
      continue;
    }
    left[top] = (left[top] ?? 0) - 1;
    const { major, argument, length } = headAt(bytes, at);
    at += length;
    // A decoder of text takes the mark away, so that the value would not come back.
    if (major === 3 && argument > 2 && bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf)
      throw new CborFault("holds a text that begins with a byte order mark");
    if (major === 2 || major === 3) at += argument;
    else if (major === 4 || major === 5) {
      if (left.length > CBOR_DEPTH_MAX) throw new CborFault(`nests deeper than ${CBOR_DEPTH_MAX}`);
      // Each item has a byte at least.
      if (argument > bytes.length) throw new CborFault("ends in the middle");
      left.push(major === 4 ? argument : argument * 2);
    } else if (major > 5) throw new CborFault("holds a tag, a float or an undefined value");
    if (at > bytes.length) throw new CborFault("ends in the middle");
  }
  if (at !== bytes.length) throw new CborFault(`has ${bytes.length - at} bytes behind its end`);
}

type Head = { readonly major: number; readonly argument: number; readonly length: number };

function headAt(bytes: Uint8Array, at: number): Head {
  const first = bytes[at];
  if (first === undefined) throw new CborFault("ends in the middle");
  const major = first >> 5;
  const info = first & 31;
  if (major === 7) {
    // false, true and null; everything else of this kind is a float or undefined.
    if (info < 20 || info > 22) throw new CborFault("holds a tag, a float or an undefined value");
    return { major: 0, argument: 0, length: 1 };
  }
  if (info < 24) return { major, argument: info, length: 1 };
  if (info > 27) throw new CborFault("has an indefinite length");
  const size = 1 << (info - 24);
  let argument = 0;
  for (let index = 1; index <= size; index++) {
    const byte = bytes[at + index];
    if (byte === undefined) throw new CborFault("ends in the middle");
    argument = argument * 256 + byte;
  }
  return { major, argument, length: 1 + size };
}
