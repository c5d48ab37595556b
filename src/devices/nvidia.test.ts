// SPDX-License-Identifier: Apache-2.0
// Claims about NVIDIA's cards, on recorded outputs of nvidia-smi.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Present } from "./device.ts";
import { joinNvidia, parseNvidiaRows } from "./nvidia.ts";

const card = (address: string, change: Partial<Present> = {}): Present => ({
  address,
  vendor: "nvidia",
  deviceId: "2684",
  model: null,
  driver: "nvidia",
  memoryBytes: null,
  ...change,
});

const fourCards = ["01", "25", "41", "61"]
  .map((bus) => `00000000:${bus}:00.0, NVIDIA GeForce RTX 4090, 24564, 570.86.15`)
  .join("\n");

test("GB10 answers [N/A]: its memory is unknown, and it is known to share the machine's", () => {
  const [device] = joinNvidia([card("000f:01:00.0")], {
    kind: "answered",
    output: "0000000F:01:00.0, NVIDIA GB10, [N/A], 580.95.05\n",
  });
  assert.deepEqual(device, {
    kind: "gpu",
    vendor: "nvidia",
    name: "NVIDIA GB10",
    address: "000f:01:00.0",
    memoryBytes: null,
    memoryAvailableBytes: null,
    memoryCapBytes: null,
    unified: true,
    driver: "580.95.05",
    state: "ok",
    reason: "shares the memory of the machine",
  });
});

test("four discrete cards of 24 GB are four devices with their own memory", () => {
  const devices = joinNvidia(
    ["01", "25", "41", "61"].map((bus) => card(`0000:${bus}:00.0`)),
    { kind: "answered", output: `${fourCards}\n` },
  );
  assert.equal(devices.length, 4);
  assert.ok(
    devices.every(
      (device) => device.memoryBytes === 24564 * 2 ** 20 && device.unified === false && device.state === "ok",
    ),
  );
});

test("no card and no tool are no devices", () => {
  assert.deepEqual(joinNvidia([], { kind: "missing" }), []);
  assert.deepEqual(joinNvidia([], { kind: "answered", output: "No devices were found\n" }), []);
});

test("[N/A] on a card that is not known to be integrated is unknown, never unified", () => {
  const [device] = joinNvidia([], { kind: "answered", output: "00000000:01:00.0, NVIDIA Thing, [N/A], 580.1" });
  assert.deepEqual([device?.state, device?.unified, device?.memoryBytes], ["memory-unknown", null, null]);
});

test("a card without a working tool is there, with the reason", () => {
  const states = (["missing", "hung", "failed", "answered"] as const).map((kind) => {
    const run = {
      kind,
      afterMs: 5000,
      message: "Failed to initialize NVML: Driver/library version mismatch",
      output: "",
    };
    const [device] = joinNvidia([card("0000:01:00.0", { model: "NVIDIA GeForce RTX 4090" })], run);
    assert.equal(device?.name, "NVIDIA GeForce RTX 4090");
    assert.ok((device?.reason ?? "").length > 10);
    return device?.state;
  });
  assert.deepEqual(states, ["tool-missing", "tool-hung", "unreadable", "unreadable"]);
});

test("one lost card among four stays visible", () => {
  const output = `${fourCards.split("\n").slice(1).join("\n")}\nUnable to determine the device handle for GPU0: 0000:01:00.0: GPU is lost.\n`;
  const devices = joinNvidia(
    ["01", "25", "41", "61"].map((bus) => card(`0000:${bus}:00.0`)),
    { kind: "answered", output },
  );
  assert.deepEqual(
    devices.map((device) => device.state),
    ["ok", "ok", "ok", "unreadable"],
  );
});

test("reads a name with a comma and refuses lines that are no rows", () => {
  assert.equal(parseNvidiaRows("00000000:01:00.0, NVIDIA A, B, 100, 1.2")[0]?.name, "NVIDIA A, B");
  assert.deepEqual(parseNvidiaRows("garbage\n, , ,\n"), []);
});
