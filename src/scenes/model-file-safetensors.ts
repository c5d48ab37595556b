// SPDX-License-Identifier: Apache-2.0
// How long a safetensors file must be, by its own head: eight bytes of length, then JSON that says where each tensor lies.
// Source: the format's README, whose limit of the head is kept.

import { messageOf } from "../std/errors.ts";
import { BadHead, type FileHead } from "./model-file-head.ts";

const HEAD_BYTES_MAX = 100_000_000;
const LENGTH_BYTES = 8;

/** In bytes. Throws CutOff and BadHead. */
export function safetensorsLength(head: FileHead): number {
  const bytes = head.u64();
  if (bytes > HEAD_BYTES_MAX) throw new BadHead(`its head has ${bytes} bytes`);
  return LENGTH_BYTES + bytes + tensorEnds(head.text(bytes)).reduce((last, end) => Math.max(last, end), 0);
}

function tensorEnds(text: string): readonly number[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new BadHead(`its head is not JSON: ${messageOf(error)}`);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw new BadHead("its head is no object");
  return Object.entries(json).flatMap(([name, tensor]) => (name === "__metadata__" ? [] : [tensorEnd(name, tensor)]));
}

function tensorEnd(name: string, tensor: unknown): number {
  const offsets = typeof tensor === "object" && tensor !== null && "data_offsets" in tensor ? tensor.data_offsets : [];
  const end: unknown = Array.isArray(offsets) ? offsets[1] : undefined;
  if (typeof end === "number" && Number.isSafeInteger(end) && end >= 0) return end;
  throw new BadHead(`its head does not say where ${name} lies`);
}
