// SPDX-License-Identifier: Apache-2.0
// Files of weights as they are read before a start: whole ones are let pass, whatever their size; one that lacks a byte is told,
// with what it has and what it should have; a head that lies costs neither time nor memory.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { writeSampleModel } from "../../src/sample/gguf.ts";
import { ModelFiles } from "../../src/scenes/model-file.ts";

const fault = (file: string): string | undefined => new ModelFiles().fault(file);

function directoryOf(t: TestContext): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "weights-"));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const u32 = (value: number): Buffer => Buffer.from(new Uint32Array([value]).buffer);
const u64 = (value: number): Buffer => Buffer.from(new BigUint64Array([BigInt(value)]).buffer);
const text = (value: string): Buffer => Buffer.concat([u64(value.length), Buffer.from(value)]);
const STRING = u32(8);
const LIST = u32(9);

type Tensor = { readonly shape: readonly number[]; readonly type: number; readonly offset: number };

function ggufHead(entries: readonly Buffer[], tensors: readonly Tensor[], version = 3): Buffer {
  return Buffer.concat([
    Buffer.from("GGUF"),
    u32(version),
    u64(tensors.length),
    u64(entries.length),
    ...entries,
    ...tensors.flatMap(({ shape, type, offset }) => [
      text("some.weight"),
      u32(shape.length),
      ...shape.map(u64),
      u32(type),
      u64(offset),
    ]),
  ]);
}

/** The bytes, and zeros that take no space up to a size. */
function write(file: string, head: Buffer, sizeBytes = head.length): string {
  fs.writeFileSync(file, head);
  fs.truncateSync(file, sizeBytes);
  return file;
}

const cutOff = (file: string, has: number, end: number): string =>
  `${file} is cut off: it has ${has} bytes, and its tensors end at byte ${end}; fetch it again`;

test("case 47: a GGUF file that lacks its last byte is cut off, whole it is not, and cut anywhere in its head it is said too", (t) => {
  const file = path.join(directoryOf(t), "model.gguf");
  const sizeBytes = writeSampleModel(file, { name: "red" });
  assert.equal(fault(file), undefined);
  fs.truncateSync(file, sizeBytes - 1);
  assert.equal(fault(file), cutOff(file, sizeBytes - 1, sizeBytes));
  const whole = fs.readFileSync(file).subarray(0, 12_000);
  for (let length = 4; length < whole.length; length += 101) {
    write(file, whole.subarray(0, length));
    assert.match(fault(file) ?? "", new RegExp(`is cut off: it has ${length} bytes, and its (head|tensors) `));
  }
});

test("a model of 100 GB with a vocabulary of half a million words is judged by its head alone", (t) => {
  const file = path.join(directoryOf(t), "large.gguf");
  const count = 500_000;
  const words = Buffer.concat([text("tokens"), LIST, STRING, u64(count), Buffer.alloc(0)]);
  const word = text("token");
  const scores = Buffer.concat([text("scores"), LIST, u32(6), u64(count), Buffer.alloc(4 * count)]);
  const entry = Buffer.concat([words, ...Array.from({ length: count }, () => word)]);
  const elements = 178e9 - (178e9 % 256);
  const head = ggufHead([entry, scores], [{ shape: [elements], type: 12, offset: 64 }]);
  const end = Math.ceil(head.length / 32) * 32 + 64 + (elements / 256) * 144;
  assert.ok(end > 100e9);
  write(file, head, end);
  const read = readBytesOf(() => assert.equal(fault(file), undefined));
  assert.ok(read < head.length + 1024 * 1024, `${read} bytes were read`);
  fs.truncateSync(file, end - 1);
  assert.equal(fault(file), cutOff(file, end - 1, end));
});

/** By read calls of this process. */
function readBytesOf(work: () => void): number {
  const now = (): number => Number(/^rchar: (\d+)$/m.exec(fs.readFileSync("/proc/self/io", "utf8"))?.[1]);
  const before = now();
  work();
  return now() - before;
}

test("the place of a tensor follows the alignment that the file names", (t) => {
  const file = path.join(directoryOf(t), "aligned.gguf");
  const alignment = Buffer.concat([text("general.alignment"), u32(4), u32(4096)]);
  const head = ggufHead([alignment], [{ shape: [10, 3], type: 1, offset: 4096 }]);
  const end = 4096 + 4096 + 60;
  assert.equal(fault(write(file, head, end)), undefined);
  assert.equal(fault(write(file, head, end - 1)), cutOff(file, end - 1, end));
});

test("of a type of tensor that is not known the place counts and no size is guessed; nor is one of a version that is not known", (t) => {
  const file = path.join(directoryOf(t), "new.gguf");
  const head = ggufHead([], [{ shape: [1e12], type: 999, offset: 320 }]);
  const start = Math.ceil(head.length / 32) * 32;
  assert.equal(fault(write(file, head, start + 320)), undefined);
  assert.equal(fault(write(file, head, start + 319)), cutOff(file, start + 319, start + 320));
  assert.equal(fault(write(file, ggufHead([], [{ shape: [1e12], type: 0, offset: 0 }], 4))), undefined);
});

test("a head that claims what no file has is refused at once", (t) => {
  const file = path.join(directoryOf(t), "lies.gguf");
  const claims: readonly (readonly [Buffer, RegExp])[] = [
    [Buffer.concat([text("a"), STRING, u64(2 ** 52)]), /cut off: .* goes on to byte 45035\d+/],
    [Buffer.concat([text("a"), STRING, Buffer.alloc(8, 0xff)]), /damaged: it has the number/],
    [Buffer.concat([text("a"), LIST, u32(10), u64(2 ** 52)]), /damaged: it claims 3602879701896397\d bytes/],
    [Buffer.concat([text("a"), LIST, LIST, u64(1)]), /damaged: a list before byte \d+ is of the type 9/],
    [Buffer.concat([text("a"), u32(77)]), /damaged: a value before byte \d+ has the type 77/],
    [Buffer.concat([u64(70_000), Buffer.alloc(8)]), /damaged: a name before byte 32 has 70000 bytes/],
    // A list of empty words, as long as the file.
    [Buffer.concat([text("a"), LIST, STRING, u64(2 ** 40)]), /damaged: its head has more than 134217728 bytes/],
  ];
  for (const [entry, said] of claims) assert.match(fault(write(file, ggufHead([entry], []), 2 ** 34)) ?? "", said);
});

test("of a model in parts every part must be there and whole", (t) => {
  const directory = directoryOf(t);
  const part = (number: number): string => path.join(directory, `big-0000${number}-of-00003.gguf`);
  const sizes = [1, 2, 3].map((number) => writeSampleModel(part(number), { name: "big" }));
  assert.equal(fault(part(1)), undefined);
  fs.truncateSync(part(2), (sizes[1] ?? 0) - 1);
  assert.match(fault(part(1)) ?? "", /big-00002-of-00003\.gguf is cut off/);
  fs.rmSync(part(2));
  assert.match(fault(part(1)) ?? "", /big-00002-of-00003\.gguf cannot be read/);
  assert.equal(fault(part(3)), undefined);
});

test("a safetensors file is measured by its own head", (t) => {
  const file = path.join(directoryOf(t), "model.safetensors");
  const of = (json: string): Buffer => Buffer.concat([u64(Buffer.byteLength(json)), Buffer.from(json)]);
  const head = of(
    JSON.stringify({
      __metadata__: { format: "pt" },
      a: { dtype: "F16", shape: [10], data_offsets: [1000, 1020] },
      b: { dtype: "F16", shape: [500], data_offsets: [0, 1000] },
    }),
  );
  const end = head.length + 1020;
  assert.equal(fault(write(file, head, end)), undefined);
  assert.equal(fault(write(file, head, end - 1)), cutOff(file, end - 1, end));
  assert.match(fault(write(file, head.subarray(0, 40))) ?? "", /its head alone goes on to byte \d+; fetch it again/);
  assert.match(fault(write(file, of("{nonsense"))) ?? "", /is damaged: its head is not JSON/);
  assert.match(fault(write(file, of('{"a":{}}'))) ?? "", /is damaged: its head does not say where a lies/);
  assert.match(
    fault(write(file, Buffer.from("<html>nothing is here</html>"))) ?? "",
    /is damaged: it has the number \d+/,
  );
  assert.match(fault(write(file, u64(100_000_001), 2 ** 30)) ?? "", /is damaged: its head has 100000001 bytes/);
});

test("what is known of a file is kept until the file changes, and what is no file is never opened", (t) => {
  const directory = directoryOf(t);
  const file = path.join(directory, "model.gguf");
  const sizeBytes = writeSampleModel(file, { name: "red" });
  const files = new ModelFiles();
  assert.equal(files.fault(file), undefined);
  assert.ok(readBytesOf(() => files.fault(file)) < 4096, "the head was read again");
  fs.truncateSync(file, sizeBytes - 1);
  assert.match(files.fault(file) ?? "", /cut off/);
  writeSampleModel(file, { name: "red" });
  assert.equal(files.fault(file), undefined);
  fs.mkdirSync(path.join(directory, "folder.gguf"));
  assert.match(files.fault(path.join(directory, "folder.gguf")) ?? "", /cannot be read: it is no file/);
});
