// SPDX-License-Identifier: Apache-2.0
// Claims about memory, processor and what the kernel shows, on recorded files.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { readKernelGpus } from "./kernel-gpus.ts";
import { parseCpuName, parseMeminfo } from "./machine.ts";
import { runTool } from "./tool.ts";

test("reads total and available memory, and never counts swap", () => {
  const text =
    "MemTotal:       127535020 kB\nMemFree:         1000 kB\nMemAvailable:   117440512 kB\nSwapTotal:      16777212 kB\n";
  assert.deepEqual(parseMeminfo(text), { totalBytes: 127535020 * 1024, availableBytes: 117440512 * 1024 });
  assert.equal(parseMeminfo(""), undefined);
});

test("reads the processor's name where there is one", () => {
  assert.equal(parseCpuName("processor\t: 0\nmodel name\t: AMD EPYC 7B13\nprocessor : 1"), "AMD EPYC 7B13");
  assert.equal(parseCpuName("processor\t: 0\nCPU implementer\t: 0x41\n"), undefined);
});

test("finds the cards of the three vendors and leaves out virtual displays", (context) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-sys-"));
  context.after(() => fs.rmSync(root, { recursive: true, force: true }));
  const write = (file: string, text: string): void => {
    fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    fs.writeFileSync(path.join(root, file), `${text}\n`);
  };
  const pci = (address: string, vendor: string, kind = "0x030000"): void => {
    write(`sys/bus/pci/devices/${address}/class`, kind);
    write(`sys/bus/pci/devices/${address}/vendor`, vendor);
    write(`sys/bus/pci/devices/${address}/device`, "0x1586");
  };
  pci("0000:01:00.0", "0x10de");
  pci("0000:02:00.0", "0x1002", "0x038000");
  pci("0000:03:00.0", "0x1234");
  pci("0000:04:00.0", "0x10de", "0x040300");
  write("sys/bus/pci/devices/0000:02:00.0/mem_info_vram_total", "536870912");
  write("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ: 1");
  const [sys, proc, dev, etc] = ["sys", "proc", "dev", "etc"].map((name) => path.join(root, name));
  assert.ok(sys !== undefined && proc !== undefined && dev !== undefined && etc !== undefined);
  const found = readKernelGpus({ sys, proc, dev, etc });
  assert.deepEqual(
    found.map(({ address, vendor, model, memoryBytes }) => [address, vendor, model, memoryBytes]),
    [
      ["0000:01:00.0", "nvidia", "NVIDIA GeForce RTX 4090", null],
      ["0000:02:00.0", "amd", null, 536870912],
    ],
  );
});

test("a tool that hangs is left behind at its deadline, a missing one is told", async () => {
  assert.equal((await runTool("sleep", ["30"], { deadlineMs: 50 })).kind, "hung");
  assert.equal((await runTool("holdfast-no-such-tool", [])).kind, "missing");
  assert.deepEqual(await runTool("sh", ["-c", "echo NVML: mismatch; exit 18"]), {
    kind: "failed",
    status: 18,
    message: "NVML: mismatch",
  });
});
