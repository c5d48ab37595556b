// SPDX-License-Identifier: Apache-2.0
// How long a GGUF file must be, by its own head: the metadata are passed over, the tensors' places are read. Source: docs/gguf.md
// of ggml, and its table of types. Rule: a type that is not known here has no size, and is never the reason for a refusal.

import { BadHead, type FileHead } from "./model-file-head.ts";

export const GGUF_MAGIC = "GGUF";

/** Version 1 had other numbers, and a later one may have: no length is told for them. */
const VERSIONS: readonly number[] = [2, 3];
const ALIGNMENT = 32;
const KEY_BYTES_MAX = 65_535;
const DIMENSIONS_MAX = 8;

const STRING = 8;
const ARRAY = 9;
const U32 = 4;
/** Bytes of a value of each fixed type, by its number; 8 and 9 are a string and an array. */
const VALUE_BYTES: readonly (number | undefined)[] = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];

/** Number of a tensor's type to the elements of a block and its bytes. */
const BLOCKS: ReadonlyMap<number, readonly [elements: number, bytes: number]> = new Map([
  [0, [1, 4]], // F32
  [1, [1, 2]], // F16
  [2, [32, 18]], // Q4_0
  [3, [32, 20]], // Q4_1
  [6, [32, 22]], // Q5_0
  [7, [32, 24]], // Q5_1
  [8, [32, 34]], // Q8_0
  [10, [256, 84]], // Q2_K
  [11, [256, 110]], // Q3_K
  [12, [256, 144]], // Q4_K
  [13, [256, 176]], // Q5_K
  [14, [256, 210]], // Q6_K
  [15, [256, 292]], // Q8_K
  [16, [256, 66]], // IQ2_XXS
  [17, [256, 74]], // IQ2_XS
  [18, [256, 98]], // IQ3_XXS
  [19, [256, 50]], // IQ1_S
  [20, [32, 18]], // IQ4_NL
  [21, [256, 110]], // IQ3_S
  [22, [256, 82]], // IQ2_S
  [23, [256, 136]], // IQ4_XS
  [24, [1, 1]], // I8
  [25, [1, 2]], // I16
  [26, [1, 4]], // I32
  [27, [1, 8]], // I64
  [28, [1, 8]], // F64
  [29, [256, 56]], // IQ1_M
  [30, [1, 2]], // BF16
  [34, [256, 54]], // TQ1_0
  [35, [256, 66]], // TQ2_0
  [39, [32, 17]], // MXFP4
  [40, [64, 36]], // NVFP4
  [41, [128, 18]], // Q1_0
]);

/** In bytes; undefined when the head does not tell. Throws CutOff and BadHead. */
export function ggufLength(head: FileHead): number | undefined {
  head.skip(GGUF_MAGIC.length);
  if (!VERSIONS.includes(head.u32())) return undefined;
  const tensorCount = head.u64();
  const entryCount = head.u64();
  let alignment = ALIGNMENT;
  for (let entry = 0; entry < entryCount; entry++) {
    const key = string(head);
    const type = head.u32();
    if (key === "general.alignment" && type === U32) alignment = head.u32();
    else passValue(head, type);
  }
  if (alignment === 0) throw new BadHead("its tensors are aligned to 0 bytes");
  let dataBytes = 0;
  for (let tensor = 0; tensor < tensorCount; tensor++) dataBytes = Math.max(dataBytes, tensorEnd(head));
  return tensorCount === 0 ? head.at : Math.ceil(head.at / alignment) * alignment + dataBytes;
}

function string(head: FileHead): string {
  const bytes = head.u64();
  if (bytes > KEY_BYTES_MAX) throw new BadHead(`a name before byte ${head.at} has ${bytes} bytes`);
  return head.text(bytes);
}

function passValue(head: FileHead, type: number): void {
  const bytes = VALUE_BYTES[type];
  if (bytes !== undefined) return head.skip(bytes);
  if (type === STRING) return head.skip(head.u64());
  if (type !== ARRAY) throw new BadHead(`a value before byte ${head.at} has the type ${type}`);
  const of = head.u32();
  const count = head.u64();
  const each = VALUE_BYTES[of];
  if (each !== undefined) return head.skip(count * each);
  if (of !== STRING) throw new BadHead(`a list before byte ${head.at} is of the type ${of}`);
  for (let item = 0; item < count; item++) head.skip(head.u64());
}

/** Where it ends, counted from the first tensor. */
function tensorEnd(head: FileHead): number {
  string(head);
  const dimensions = head.u32();
  if (dimensions > DIMENSIONS_MAX) throw new BadHead(`a tensor before byte ${head.at} has ${dimensions} dimensions`);
  let elements = 1;
  for (let dimension = 0; dimension < dimensions; dimension++) elements *= head.u64();
  const [perBlock, blockBytes] = BLOCKS.get(head.u32()) ?? [1, 0];
  const end = head.u64() + Math.ceil(elements / perBlock) * blockBytes;
  if (!Number.isSafeInteger(end)) throw new BadHead(`a tensor before byte ${head.at} has ${elements} elements`);
  return end;
}
