// SPDX-License-Identifier: Apache-2.0
// Claims about what nvidia-smi writes; what is made of whole machines is in tests/devices.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAmdRows } from "./amd.ts";
import { jetsonRelease } from "./jetson.ts";
import { parseNvidiaRows } from "./nvidia.ts";
import { parseSlices } from "./nvidia-slices.ts";

test("reads a name with a comma, and refuses lines that are no rows", () => {
  const [row] = parseNvidiaRows("00000000:01:00.0, NVIDIA A, B, 20, 80, 100, 1.2");
  assert.deepEqual(row, {
    address: "0000:01:00.0",
    name: "NVIDIA A, B",
    memoryBytes: 100 * 2 ** 20,
    memoryFreeBytes: 80 * 2 ** 20,
    driver: "1.2",
  });
  assert.deepEqual(
    parseNvidiaRows("garbage\n, , , , ,\nUnable to determine the device handle for GPU0: a, b, c, d, e"),
    [],
  );
});

test("free memory that cannot be is unknown, and what is not told follows from what is used", () => {
  const free = (cells: string): number | null | undefined =>
    parseNvidiaRows(`00000000:01:00.0, NVIDIA A, ${cells}, 1.2`)[0]?.memoryFreeBytes;
  assert.deepEqual(
    [
      free("40, [N/A], 100"),
      free("[N/A], [N/A], 100"),
      free("10, 900, 100"),
      free("900, [N/A], 100"),
      free("1, 0, 100"),
    ],
    [60 * 2 ** 20, null, null, null, 0],
  );
});

test("answers of another shape than expected are no rows, and never an exception", () => {
  for (const text of [
    "",
    "null",
    "[]",
    "{}",
    "[null]",
    '{"card0": null}',
    '[{"bus": 3}]',
    "no json {",
    '{"gpu_data": [1]}',
  ])
    assert.deepEqual(parseAmdRows(text), [], text);
  for (const text of ["", '<gpu id="x">', '<nvidia_smi_log><gpu id="00000000:01:00.0"></gpu></nvidia_smi_log>'])
    assert.deepEqual(parseSlices(text, ""), [], text);
  assert.equal(jetsonRelease("# R35 (release), REVISION: 5.0, GCID: 1"), "L4T R35.5.0");
  assert.equal(jetsonRelease("something else"), undefined);
});
