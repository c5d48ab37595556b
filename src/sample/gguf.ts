// SPDX-License-Identifier: Apache-2.0
// A model file (GGUF version 3) that says who it is: one layer of the llama architecture whose only knowledge is which token
// follows which. Every weight that would let a prompt matter is zero, so the greedy answer to any prompt is one sentence.
// Source: the GGUF specification, docs/gguf.md of ggml. Rule: the same options give the same bytes.

import fs from "node:fs";
import { assert } from "../std/assert.ts";
import { fileFailure } from "../std/files.ts";
import { SAMPLE_NAME } from "./name.ts";

export type SampleModel = {
  readonly name: string;
  /** Zeros that the engine loads and never computes with, for tests of memory; the file has them as a hole. */
  readonly padBytes?: number;
  /** After the sentence a line feed and the sentence again, until the engine's limit: for tests of streams. */
  readonly isEndless?: boolean;
};

/** What is not zero comes first; from there to sizeBytes everything is. */
export type Gguf = { readonly head: Buffer; readonly sizeBytes: number };

/**
 * The pieces of sentenceOf. Each is longer than two characters and none is made of others, so that the tokenizer never finds
 * one in a prompt, and no prompt can end in the middle of the sentence.
 */
function piecesOf(name: string): readonly string[] {
  return ["I am", ` ${name},`, " a sample", " model", " of", " Holdfast."];
}

const TYPES = { normal: 1, unknown: 2, control: 3, unused: 5, byte: 6 } as const;

type Token = { readonly text: string; readonly type: number; readonly score: number };

const BEGIN = 1;
const END = 2;
const FIRST_BYTE = 3;
const FIRST_PIECE = FIRST_BYTE + 256;

const HEADS = 9;
const HEAD_SIZE = 32;
/** Also the size of the vocabulary: an embedding is the token's own unit vector. */
const WIDTH = HEADS * HEAD_SIZE;
const CONTEXT = 65_536;

function vocabulary(pieces: readonly string[]): readonly Token[] {
  const tokens: Token[] = [
    { text: "<unk>", type: TYPES.unknown, score: 0 },
    { text: "<s>", type: TYPES.control, score: 0 },
    { text: "</s>", type: TYPES.control, score: 0 },
  ];
  for (let byte = 0; byte < 256; byte++) {
    tokens.push({ text: `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`, type: TYPES.byte, score: 0 });
  }
  for (const piece of pieces) tokens.push({ text: piece.replaceAll(" ", "\u2581"), type: TYPES.normal, score: -1 });
  while (tokens.length < WIDTH) tokens.push({ text: `<unused${tokens.length}>`, type: TYPES.unused, score: -1 });
  return tokens;
}

/** The token that follows: through the sentence in order, and to its start from everywhere else. */
function follower(token: number, pieceCount: number, isEndless: boolean): number {
  const at = token - FIRST_PIECE;
  if (at < 0 || at >= pieceCount) return FIRST_PIECE;
  if (at < pieceCount - 1) return token + 1;
  return isEndless ? FIRST_BYTE + 0x0a : END;
}

type Tensor = { readonly name: string; readonly shape: readonly number[]; readonly data?: Float32Array };

function tensorsOf(pieceCount: number, isEndless: boolean, experts: Experts | undefined): readonly Tensor[] {
  const embedding = new Float32Array(WIDTH * WIDTH);
  const output = new Float32Array(WIDTH * WIDTH);
  for (let token = 0; token < WIDTH; token++) {
    embedding[token * WIDTH + token] = 1;
    output[follower(token, pieceCount, isEndless) * WIDTH + token] = 4;
  }
  const ones = new Float32Array(WIDTH).fill(1);
  const narrow = [WIDTH, HEAD_SIZE];
  const ffn = experts?.width ?? 32;
  const many = experts === undefined ? [] : [experts.count];
  const kind = experts === undefined ? "" : "_exps";
  return [
    { name: "token_embd.weight", shape: [WIDTH, WIDTH], data: embedding },
    { name: "output.weight", shape: [WIDTH, WIDTH], data: output },
    { name: "output_norm.weight", shape: [WIDTH], data: ones },
    { name: "blk.0.attn_norm.weight", shape: [WIDTH], data: ones },
    { name: "blk.0.ffn_norm.weight", shape: [WIDTH], data: ones },
    { name: "blk.0.attn_q.weight", shape: [WIDTH, WIDTH] },
    { name: "blk.0.attn_k.weight", shape: narrow },
    { name: "blk.0.attn_v.weight", shape: narrow },
    { name: "blk.0.attn_output.weight", shape: [WIDTH, WIDTH] },
    ...(experts === undefined ? [] : [{ name: "blk.0.ffn_gate_inp.weight", shape: [WIDTH, experts.count] }]),
    { name: `blk.0.ffn_gate${kind}.weight`, shape: [WIDTH, ffn, ...many] },
    { name: `blk.0.ffn_up${kind}.weight`, shape: [WIDTH, ffn, ...many] },
    { name: `blk.0.ffn_down${kind}.weight`, shape: [ffn, WIDTH, ...many] },
  ];
}

type Experts = { readonly count: number; readonly width: number };

const EXPERTS = 64;

/** Padding is a mixture of experts of which one is asked: the engine holds all of them and computes with 1 of 64. */
function expertsFor(padBytes: number): Experts | undefined {
  if (padBytes <= 0) return undefined;
  const bytesPerRow = 3 * WIDTH * 4 * EXPERTS;
  return { count: EXPERTS, width: Math.ceil(padBytes / bytesPerRow / 32) * 32 };
}

const VALUE = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;

function u32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value);
  return buffer;
}

function u64(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function f32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeFloatLE(value);
  return buffer;
}

function entry(key: string, type: number, value: Buffer): Buffer {
  return Buffer.concat([string(key), u32(type), value]);
}

function list(key: string, type: number, values: readonly Buffer[]): Buffer {
  return entry(key, VALUE.array, Buffer.concat([u32(type), u64(values.length), ...values]));
}

function metadataOf(name: string, tokens: readonly Token[], experts: Experts | undefined): readonly Buffer[] {
  const count = (key: string, value: number): Buffer => entry(key, VALUE.u32, u32(value));
  const text = (key: string, value: string): Buffer => entry(key, VALUE.string, string(value));
  return [
    text("general.architecture", "llama"),
    text("general.name", name),
    count("general.file_type", 0),
    count("llama.context_length", CONTEXT),
    count("llama.embedding_length", WIDTH),
    count("llama.block_count", 1),
    count("llama.feed_forward_length", experts?.width ?? 32),
    ...(experts === undefined ? [] : [count("llama.expert_count", experts.count), count("llama.expert_used_count", 1)]),
    count("llama.attention.head_count", HEADS),
    count("llama.attention.head_count_kv", 1),
    entry("llama.attention.layer_norm_rms_epsilon", VALUE.f32, f32(1e-5)),
    count("llama.rope.dimension_count", HEAD_SIZE),
    count("llama.vocab_size", WIDTH),
    text("tokenizer.ggml.model", "llama"),
    list(
      "tokenizer.ggml.tokens",
      VALUE.string,
      tokens.map((token) => string(token.text)),
    ),
    list(
      "tokenizer.ggml.scores",
      VALUE.f32,
      tokens.map((token) => f32(token.score)),
    ),
    list(
      "tokenizer.ggml.token_type",
      VALUE.i32,
      tokens.map((token) => u32(token.type)),
    ),
    count("tokenizer.ggml.bos_token_id", BEGIN),
    count("tokenizer.ggml.eos_token_id", END),
    count("tokenizer.ggml.unknown_token_id", 0),
    entry("tokenizer.ggml.add_bos_token", VALUE.bool, Buffer.from([1])),
    entry("tokenizer.ggml.add_space_prefix", VALUE.bool, Buffer.from([0])),
    text("tokenizer.chat_template", "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"),
  ];
}

const ALIGNMENT = 32;
const aligned = (size: number): number => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

export function ggufOf({ name, padBytes = 0, isEndless = false }: SampleModel): Gguf {
  assert(SAMPLE_NAME.test(name), "the name of a sample model is checked where it is typed");
  const pieces = piecesOf(name);
  const experts = expertsFor(padBytes);
  const tensors = tensorsOf(pieces.length, isEndless, experts);
  const metadata = metadataOf(name, vocabulary(pieces), experts);
  const header = [Buffer.from("GGUF"), u32(3), u64(tensors.length), u64(metadata.length), ...metadata];
  let offset = 0;
  for (const { name: tensor, shape } of tensors) {
    header.push(string(tensor), u32(shape.length), ...shape.map(u64), u32(0), u64(offset));
    offset = aligned(offset + 4 * shape.reduce((product, each) => product * each, 1));
  }
  const described = Buffer.concat(header);
  const start = aligned(described.length);
  // The tensors with data come first, and each fills a whole number of aligned steps.
  const data = tensors.flatMap((tensor) => (tensor.data === undefined ? [] : [Buffer.from(tensor.data.buffer)]));
  const head = Buffer.concat([described, Buffer.alloc(start - described.length), ...data]);
  return { head, sizeBytes: start + offset };
}

/** Replaces the file at once; zeros at its end are a hole that takes no space. Returns its size in bytes. */
export function writeSampleModel(file: string, model: SampleModel): number {
  const { head, sizeBytes } = ggufOf(model);
  const beside = `${file}.${process.pid}.new`;
  try {
    try {
      fs.writeFileSync(beside, head);
      fs.truncateSync(beside, sizeBytes);
      fs.renameSync(beside, file);
    } finally {
      fs.rmSync(beside, { force: true });
    }
  } catch (error) {
    throw fileFailure(file, error);
  }
  return sizeBytes;
}
