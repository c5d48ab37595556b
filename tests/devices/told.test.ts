// SPDX-License-Identifier: Apache-2.0
// What people and the controller are told of devices: each bad one with what to do, each number with what of it is free, and
// nothing that the protocol does not take.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Check } from "typebox/value";
import { gpuMemory } from "../../src/cli/node-commands.ts";
import { attentionOf } from "../../src/controller/attention.ts";
import type { Device } from "../../src/devices/device.ts";
import { device, type Node } from "../../src/protocol/node-schema.ts";
import { scan } from "./kit.ts";
import {
  a100InSlices,
  four4090,
  gb10,
  intelBoth,
  jetsonOrinNx,
  mismatchScript,
  one4090,
  oneLostOfFour,
  radeon7900,
  strixHalo,
} from "./machines.ts";

/** An online node of which only its devices matter. */
function nodeWith(devices: readonly Device[]): Node {
  return {
    id: "node_00000000000000000000000001",
    name: "anna",
    status: "active",
    online: true,
    rivalAt: null,
    boundary: null,
    clockOffsetMs: 0,
    facts: { devices },
  } as unknown as Node;
}

test("each device that cannot be used needs attention, with its state, its reason and what to do", async (t) => {
  const [mismatch] = await scan(t, one4090(mismatchScript));
  const lost = (await scan(t, oneLostOfFour)).filter(({ state }) => state === "lost");
  assert.ok(mismatch !== undefined && lost.length === 1);
  const items = attentionOf([nodeWith([mismatch, ...lost, ...(await scan(t, gb10))])], [], 0);
  assert.deepEqual(
    items.map(({ text, advice }) => [text, advice]),
    [
      [
        "NVIDIA GeForce RTX 4090 of node anna cannot be used: driver-mismatch, the driver in the kernel and NVIDIA's library are of different versions: reboot, or reload the driver",
        "Reboot that machine, or unload and load the driver: an update replaced its library and not the loaded driver.",
      ],
      [
        "NVIDIA GeForce RTX 4090 of node anna cannot be used: lost, Unable to determine the device handle for GPU1: 0000:25:00.0: Unknown Error: reboot the machine; dmesg has the Xid",
        "Look at dmesg there and reboot; a card that goes again has a fault of power, heat or seating.",
      ],
    ],
  );
});

test("a memory is shown with what of it is free; a shared one with its cap", async (t) => {
  const shown = async (machine: Parameters<typeof scan>[1]): Promise<string> =>
    (await scan(t, machine)).map((gpu) => gpuMemory({ ...gpu })).join(" | ");
  assert.equal(await shown(radeon7900), "24.0 GiB, 22.0 GiB free");
  assert.match(await shown(gb10), /^shared, at most 101\.\d GiB$/);
  assert.equal(await shown(strixHalo), "shared, at most 108.0 GiB");
  assert.equal(await shown(jetsonOrinNx), "shared");
  assert.equal(await shown(intelBoth), "shared | unknown");
});

test("the protocol takes whatever discovery tells", async (t) => {
  const long = `echo '${"x".repeat(5_000)}'; exit 1`;
  for (const machine of [four4090, gb10, jetsonOrinNx, strixHalo, intelBoth, a100InSlices("4, 4, 4"), one4090(long)])
    for (const found of await scan(t, machine)) assert.ok(Check(device, found), JSON.stringify(found));
});
