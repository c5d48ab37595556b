// SPDX-License-Identifier: Apache-2.0
// What a flow reads into and what still waits to be written are never the same memory, and together they have a bound.

import assert from "node:assert/strict";
import type net from "node:net";
import { Writable } from "node:stream";
import { test } from "node:test";
import { Flow, FLOW_BYTES_MAX } from "./flow.ts";

const SIZES = [1, 100, 16_383, 16_384, 20_000, 40_000, 65_535, 65_536, 65_536];

test("a buffer whose bytes wait to be written is not read into, whatever the sizes and the pace are", async () => {
  const marks: number[] = [];
  let writing: { readonly chunk: Buffer; readonly done: () => void } | undefined;
  const to = new Writable({ write: (chunk: Buffer, _, done) => void (writing = { chunk, done }) });
  /** The kernel takes what it was given. */
  const take = (): void => {
    if (writing === undefined) return;
    const { chunk, done } = writing;
    writing = undefined;
    const mark = marks.shift();
    for (const at of [0, chunk.length >> 1, chunk.length - 1]) assert.equal(chunk[at], mark, "it was read over");
    done();
  };
  let isReading = true;
  const from = {
    on: () => from,
    resume: () => {
      isReading = true;
    },
  };
  const flow = new Flow({ see: () => true });
  flow.reads(from as unknown as net.Socket);
  flow.writesTo(to as unknown as net.Socket);
  let reads = 0;
  for (let step = 0; step < 20_000; step++) {
    // Now and then, in an order that does not repeat soon.
    if (!isReading || (step * 7919) % 13 < 4) take();
    if (step % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
    if (!isReading) continue;
    const buffer = flow.onread.buffer();
    const count = SIZES[(step * 104_729) % SIZES.length] ?? 1;
    buffer.fill(step % 251, 0, count);
    marks.push(step % 251);
    reads++;
    isReading = flow.onread.callback(count, buffer);
    assert.ok(flow.waitingBytes <= FLOW_BYTES_MAX);
  }
  assert.ok(reads > 1000, `${reads} reads`);
});
