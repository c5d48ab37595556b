// SPDX-License-Identifier: Apache-2.0
// A fake nvidia-smi that answers as GB10's does, answers nothing, fails or hangs: what it does not tell is unknown, never zero.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import type { Device, Present } from "./device.ts";
import { joinNvidia, NVIDIA_QUERY } from "./nvidia.ts";
import { runTool } from "./tool.ts";

const card: Present = {
  address: "000f:01:00.0",
  vendor: "nvidia",
  deviceId: "2e12",
  model: "NVIDIA GB10",
  driver: "nvidia",
  nodes: ["nvidia0", "nvidiactl", "nvidia-uvm"],
  isIntegrated: false,
  memoryBytes: null,
  memoryUsedBytes: null,
  sharedBytes: null,
  hasSlices: false,
};
const row = (memory: string): string =>
  `echo '0000000F:01:00.0, NVIDIA GB10, ${memory}, ${memory}, ${memory}, 580.95.05'`;

test("case 27: nvidia-smi without a number is unknown memory, never zero; GB10 is said to share the machine's", async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "smi-"));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  const seen = async (script: string, deadlineMs = 20_000): Promise<Partial<Device>> => {
    const file = path.join(directory, "nvidia-smi");
    fs.writeFileSync(`${file}.new`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    fs.renameSync(`${file}.new`, file);
    const run = await runTool(file, NVIDIA_QUERY, { deadlineMs });
    const answers = { run, blocked: () => undefined, machineMemoryBytes: 121 * 2 ** 30, isWindows: false };
    const [device, more] = joinNvidia([card], answers);
    assert.equal(more, undefined);
    assert.equal(device?.memoryBytes, null, script);
    assert.equal(device?.name, "NVIDIA GB10");
    return device;
  };
  for (const memory of ["[N/A]", "Not Supported", "[Not Supported]", "", "0"]) {
    const { unified, state, reason } = await seen(row(memory));
    assert.deepEqual([unified, state, reason], [true, "ok", "shares the memory of the machine"], memory);
  }
  assert.equal((await seen("exit 0")).state, "lost");
  const failed = await seen("echo 'NVIDIA-SMI has failed' >&2; exit 9");
  assert.deepEqual(
    [failed.state, failed.reason],
    ["driver-missing", "nvidia-smi: NVIDIA-SMI has failed (the kernel shows nvidia bound to it)"],
  );
  assert.equal((await seen("exec sleep 30", 200)).state, "tool-hung");
});
