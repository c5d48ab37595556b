// SPDX-License-Identifier: Apache-2.0
// Claims about what discovery makes of recorded machines. Rule: unknown is null, a failure is a state with a reason, and
// nothing that the kernel shows is absent.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Device } from "../../src/devices/device.ts";
import { withLost } from "../../src/devices/devices.ts";
import { scanGpus } from "../../src/devices/scan.ts";
import { build, opener, pci, prints, type Recorded, scan, together } from "./kit.ts";
import {
  a100InSlices,
  four4090,
  gb10,
  intelBoth,
  jetsonOrinNx,
  mi300x,
  mismatchScript,
  nvidiaSmi,
  one4090,
  oneLostOfFour,
  radeon7900,
  strixHalo,
} from "./machines.ts";

const GIB = 2 ** 30;
const short = (device: Device | undefined): readonly unknown[] => [
  device?.name,
  device?.state,
  device?.unified,
  device?.memoryBytes,
  device?.memoryAvailableBytes,
];

test("four cards of 24 GB are four, and what a stranger holds of one is not available", async (t) => {
  const devices = await scan(t, four4090);
  assert.deepEqual(
    devices.map(({ address, state, memoryBytes, memoryAvailableBytes }) => [
      address,
      state,
      memoryBytes,
      memoryAvailableBytes,
    ]),
    ["01", "25", "41", "61"].map((bus, index) => [
      `0000:${bus}:00.0`,
      "ok",
      24_564 * 2 ** 20,
      (index === 2 ? 176 : 24_064) * 2 ** 20,
    ]),
  );
});

test("AMD: a card's memory and what is used of it come from the kernel, its name from a tool", async (t) => {
  const [card, more] = await scan(t, radeon7900);
  assert.equal(more, undefined);
  assert.deepEqual(short(card), ["Radeon RX 7900 XTX", "ok", false, 24 * GIB - 2 ** 24, 22 * GIB - 2 ** 24]);
  assert.equal(card?.reason, null);
  const pair = await scan(t, mi300x);
  assert.deepEqual(
    pair.map((device) => [device.name, device.state, device.address, device.memoryBytes]),
    ["0000:05:00.0", "0000:26:00.0"].map((address) => ["AMD Instinct MI300X", "ok", address, 206_141_652_992]),
  );
});

test("AMD: a tool that is missing, hangs, fails or says something else takes nothing away and is told", async (t) => {
  const without = { ...radeon7900, tools: {} };
  assert.deepEqual((await scan(t, without))[0]?.state, "ok");
  const noted = async (script: string, deadlineMs?: number): Promise<string> => {
    const [device] = await scan(t, { ...radeon7900, tools: { "amd-smi": script } }, deadlineMs);
    assert.equal(device?.state, "ok");
    assert.equal(device?.memoryBytes, 24 * GIB - 2 ** 24);
    return device?.reason ?? "";
  };
  assert.match(await noted("exec /bin/sleep 30", 2_000), /did not answer within 2 s/);
  assert.match(await noted("echo 'no such ioctl' >&2; exit 1"), /its tool failed: no such ioctl/);
  assert.match(
    await noted(prints('[{"gpu":0,"bus":{"bdf":"0000:44:00.0"},"vram":{"size":{"value":1,"unit":"MB"}}}]')),
    /the kernel shows it, its tool does not/,
  );
  assert.match(
    await noted(prints('{"gpu_data":[{"bus":{"bdf":"0000:03:00.0"},"vram":{"size":{"value":16384,"unit":"MB"}}}]}')),
    /the kernel tells 24560 MiB, its tool 16384 MiB/,
  );
});

test("Intel: the processor's own shares the machine's memory, a card's is unknown unless its driver tells it", async (t) => {
  const [own, card] = await scan(t, intelBoth);
  assert.deepEqual(short(own), ["Intel GPU [8086:a780] at 0000:00:02.0", "ok", true, null, null]);
  assert.deepEqual([card?.state, card?.unified, card?.memoryBytes], ["memory-unknown", null, null]);
  const told = together(intelBoth, {
    files: { "sys/bus/pci/devices/0000:03:00.0/tile0/physical_vram_size_bytes": String(12 * GIB) },
  });
  const [, knowing] = await scan(t, told);
  assert.deepEqual([knowing?.state, knowing?.unified, knowing?.memoryBytes], ["ok", false, 12 * GIB]);
});

test("a card without its driver, under another one, or given to a virtual machine says which", async (t) => {
  const cases: readonly (readonly [string, string | undefined, RegExp])[] = [
    ["0x10de", undefined, /no driver is bound to it: install NVIDIA's/],
    ["0x10de", "nouveau", /nouveau drives it: that is not NVIDIA's own driver/],
    ["0x10de", "vfio-pci", /given to a virtual machine/],
    ["0x1002", undefined, /modprobe amdgpu/],
    ["0x1002", "radeon", /radeon drives it/],
    ["0x8086", undefined, /no driver is bound to it: load i915/],
  ];
  for (const [vendor, driver, reason] of cases) {
    const card = pci("0000:01:00.0", { vendor, device: "0x1234", ...(driver === undefined ? {} : { driver }) });
    const [device, more] = await scan(t, card);
    assert.equal(more, undefined);
    assert.equal(device?.state, "driver-missing", `${vendor} ${driver}`);
    assert.match(device?.reason ?? "", reason);
    assert.equal(device?.memoryBytes, null);
  }
});

test("each way in which nvidia-smi can fail is a state of its own, and the card stays", async (t) => {
  const cases: readonly (readonly [string | undefined, Device["state"], RegExp])[] = [
    [undefined, "tool-missing", /nvidia-smi is not in the path/],
    ["exec /bin/sleep 30", "tool-hung", /did not answer within 2 s/],
    [mismatchScript, "driver-mismatch", /reboot, or reload the driver/],
    [
      'echo "NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver."; exit 9',
      "driver-missing",
      /couldn't communicate/,
    ],
    [
      'echo "NVIDIA-SMI couldn\'t find libnvidia-ml.so library in your system."; exit 12',
      "tool-missing",
      /libnvidia-ml/,
    ],
    [
      "echo 'Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.  Reboot the system to recover this GPU'; exit 15",
      "lost",
      /GPU is lost/,
    ],
    ["echo 'Unable to determine the device handle for GPU0: Unknown Error'; exit 255", "lost", /Unknown Error/],
    ["echo 'No devices were found'", "lost", /the kernel shows it at 0000:01:00.0, nvidia-smi does not/],
    ["echo 'Failed to initialize NVML: Unknown Error'; exit 255", "unreadable", /NVML: Unknown Error/],
  ];
  for (const [script, state, reason] of cases) {
    const [device, more] = await scan(t, one4090(script), 2_000);
    assert.equal(more, undefined);
    assert.deepEqual(
      [device?.name, device?.state, device?.memoryBytes],
      ["NVIDIA GeForce RTX 4090", state, null],
      script,
    );
    assert.match(device?.reason ?? "", reason);
  }
});

test("one lost card among four stays visible, as lost, and takes nothing from the others", async (t) => {
  const devices = await scan(t, oneLostOfFour);
  assert.deepEqual(devices.map(({ address, state }) => [address, state]).toSorted(), [
    ["0000:01:00.0", "ok"],
    ["0000:25:00.0", "lost"],
    ["0000:41:00.0", "ok"],
    ["0000:61:00.0", "ok"],
  ]);
  assert.match(devices.find(({ state }) => state === "lost")?.reason ?? "", /GPU1: 0000:25:00.0/);
});

test("a card that was on the bus and is gone stays as lost; slices that were cut anew do not", async (t) => {
  const before = await scan(t, four4090);
  const now = withLost(before, before.slice(1));
  assert.deepEqual(
    now.map(({ address, state, memoryAvailableBytes }) => [address, state, memoryAvailableBytes === null]),
    [...before.slice(1).map(({ address }) => [address, "ok", false]), ["0000:01:00.0", "lost", true]],
  );
  assert.deepEqual(withLost(now, before), before);
  const slices = await scan(t, a100InSlices("4, 40332, 40960"));
  const whole = slices.filter(({ address }) => address === "0000:86:00.0");
  assert.deepEqual(withLost(slices, whole), whole);
});

test("what the tool shows and the kernel does not is told, except under Windows", async (t) => {
  const row = { tools: { "nvidia-smi": nvidiaSmi(["00000000:01:00.0, NVIDIA GeForce RTX 4090, 1, 2, 24564, 560.1"]) } };
  const [device] = await scan(t, row);
  assert.deepEqual([device?.state, device?.reason], ["ok", "nvidia-smi shows it, the kernel's /sys does not"]);
  const [windows] = await scan(t, { ...row, nodes: ["dxg"] });
  assert.deepEqual([windows?.state, windows?.reason], ["ok", null]);
  assert.deepEqual(await scan(t, {}), []);
});

test("D43, D45: a node that is missing is told before one that is closed, and each card has its own verdict", async (t) => {
  const [, second] = await scan(t, { ...four4090, nodes: (four4090.nodes ?? []).filter((node) => node !== "nvidia3") });
  assert.equal(second?.state, "ok");
  const [first] = await scan(t, { ...four4090, nodes: (four4090.nodes ?? []).filter((node) => node !== "nvidia3") });
  assert.deepEqual([first?.address, first?.state], ["0000:01:00.0", "node-missing"]);
  assert.match(first?.reason ?? "", /\/dev\/nvidia3 does not exist: run nvidia-modprobe -c 3, or/);
  assert.equal(first?.memoryBytes, 24_564 * 2 ** 20, "what the tool tells stays");
});

test("an open that hangs in a driver is a state of that card alone, and an opener that fails is told", async (t) => {
  const { around } = build(t, four4090);
  const [node, ...parameters] = opener;
  const script = `case "$*" in *nvidia2*) exec /bin/sleep 30;; esac; exec "${node}" "${parameters.join(" ")}" "$@"`;
  const hanging = await scanGpus({
    ...around,
    opener: ["/bin/sh", "-c", script, "sh"],
    tools: { ...around.tools, deadlineMs: 3_000 },
  });
  // Its minor number is 2: the second of them on the bus.
  assert.deepEqual(
    hanging.map(({ state }) => state),
    ["ok", "unreadable", "ok", "ok"],
  );
  assert.match(hanging[1]?.reason ?? "", /nvidia2, .* did not end within 3 s/);
  for (const [failing, reason] of [
    [["/bin/sh", "-c", "echo broken >&2; exit 1"], /failed: broken/],
    [["/bin/sh", "-c", "echo no json"], /failed: /],
    [["/bin/holdfast-no-such-program"], /cannot be started/],
  ] as const)
    for (const device of await scanGpus({ ...around, opener: failing })) {
      assert.equal(device.state, "unreadable");
      assert.match(device.reason ?? "", reason);
    }
});

test("D45: without nvidia-uvm every card says that this node is missing", async (t) => {
  const nodes = (four4090.nodes ?? []).filter((node) => node !== "nvidia-uvm");
  for (const device of await scan(t, { ...four4090, nodes })) {
    assert.equal(device.state, "node-missing");
    assert.match(device.reason ?? "", /\/dev\/nvidia-uvm does not exist: run nvidia-modprobe -u -c 0, or/);
  }
});

test("D47: slices are listed with their own memory when the card itself is forbidden, unknown or told", async (t) => {
  for (const parent of [
    "[Insufficient Permissions], [Insufficient Permissions], [Insufficient Permissions]",
    "[N/A], [N/A], [N/A]",
    "62, 40274, 40960",
  ]) {
    const devices = await scan(t, a100InSlices(parent));
    assert.deepEqual(
      devices.map((device) => [
        device.address,
        device.name,
        device.state,
        device.memoryBytes,
        device.memoryAvailableBytes,
      ]),
      [
        ["0000:3b:00.0/gi2/ci0", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "ok", 19_968 * 2 ** 20, 19_931 * 2 ** 20],
        ["0000:3b:00.0/gi5/ci0", "NVIDIA A100-SXM4-40GB MIG 2g.10gb", "ok", 9_856 * 2 ** 20, 9_831 * 2 ** 20],
        ["0000:86:00.0", "NVIDIA A100-SXM4-40GB", "ok", 40_960 * 2 ** 20, 40_332 * 2 ** 20],
      ],
      parent,
    );
  }
});

test("D48: a driver and a library of different versions after an upgrade are told so, by status or by words", async (t) => {
  for (const script of [
    mismatchScript,
    "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 1",
    "exit 18",
  ]) {
    const [device] = await scan(t, one4090(script));
    assert.deepEqual([device?.state, device?.memoryBytes], ["driver-mismatch", null]);
    assert.match(device?.reason ?? "", /different versions: reboot, or reload/);
  }
});

test("D49: unified memory is told of devices known to be integrated only, never as zero and never as all of the machine's", async (t) => {
  const rows = (name: string, memory: string): Recorded => ({
    ...gb10,
    tools: { "nvidia-smi": nvidiaSmi([`0000000F:01:00.0, ${name}, ${memory}, 580.95.05`]) },
  });
  const table: readonly (readonly [Recorded, readonly unknown[]])[] = [
    [gb10, ["ok", true, null]],
    [rows("NVIDIA GB10", "0, 0, 0"), ["ok", true, null]],
    [rows("NVIDIA GB10", "4096, 120524, 124620"), ["ok", true, null]],
    [rows("NVIDIA GB10", "Not Supported, Not Supported, Not Supported"), ["ok", true, null]],
    [jetsonOrinNx, ["ok", true, null]],
    [strixHalo, ["ok", true, null]],
    [rows("NVIDIA Thing", "[N/A], [N/A], [N/A]"), ["memory-unknown", null, null]],
    [rows("NVIDIA Thing", "0, 0, 0"), ["memory-unknown", null, null]],
    [rows("NVIDIA Thing", "1, 1, 17592186044415"), ["memory-unknown", null, null]],
  ];
  for (const [machine, expected] of table) {
    const [device, more] = await scan(t, machine);
    assert.equal(more, undefined);
    assert.deepEqual([device?.state, device?.unified, device?.memoryBytes], expected, JSON.stringify(machine.tools));
  }
  const [odd] = await scan(t, rows("NVIDIA Thing", "99999999, 99999999, 1024"));
  assert.deepEqual(short(odd), ["NVIDIA Thing", "ok", false, 2 ** 30, null]);
});

test("GB10 has a cap of about 101 of its 121.7 GiB; Strix Halo's is what GTT reaches, whatever is set apart", async (t) => {
  const [spark] = await scan(t, gb10);
  assert.ok(Math.abs((spark?.memoryCapBytes ?? 0) / GIB - 101) < 0.5, String(spark?.memoryCapBytes));
  const [strix] = await scan(t, strixHalo);
  assert.equal(strix?.memoryCapBytes, 108 * GIB);
  const place = "sys/bus/pci/devices/0000:c5:00.0";
  const apart = together(strixHalo, {
    files: { [`${place}/mem_info_vram_total`]: String(96 * GIB), [`${place}/mem_info_gtt_total`]: String(15 * GIB) },
  });
  const [cut] = await scan(t, apart);
  assert.deepEqual(
    [cut?.unified, cut?.memoryBytes, cut?.memoryCapBytes, cut?.reason],
    [false, 96 * GIB, null, "integrated, with memory set apart for it"],
  );
});

test("D50: a Jetson without nvidia-smi is a device that works; a missing node or driver is told", async (t) => {
  const [device, more] = await scan(t, jetsonOrinNx);
  assert.equal(more, undefined);
  assert.deepEqual(short(device), [
    "NVIDIA Jetson Orin NX Engineering Reference Developer Kit",
    "ok",
    true,
    null,
    null,
  ]);
  assert.equal(device?.driver, "L4T R36.4.3");
  const [missing] = await scan(t, { ...jetsonOrinNx, nodes: ["nvmap"] });
  assert.equal(missing?.state, "node-missing");
  const [driverless] = await scan(t, {
    ...jetsonOrinNx,
    links: { "sys/devices/platform/bus@0/17000000.gpu/of_node": "../../../../firmware" },
  });
  assert.equal(driverless?.state, "driver-missing");
});
