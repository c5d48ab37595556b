// SPDX-License-Identifier: Apache-2.0
// The machine itself: memory and processor, from /proc and the operating system. Swap is never counted as memory.

import fs from "node:fs";
import os from "node:os";
import { Failure } from "../std/errors.ts";
import type { Device } from "./device.ts";

export type Memory = { readonly totalBytes: number; readonly availableBytes: number };

export function parseMeminfo(text: string): Memory | undefined {
  const kibibytes = (key: string): number | undefined => {
    const value = new RegExp(`^${key}:\\s+(\\d+) kB$`, "m").exec(text)?.[1];
    return value === undefined ? undefined : Number(value) * 1024;
  };
  const totalBytes = kibibytes("MemTotal");
  const availableBytes = kibibytes("MemAvailable") ?? kibibytes("MemFree");
  return totalBytes === undefined || availableBytes === undefined ? undefined : { totalBytes, availableBytes };
}

export function readMemory(proc = "/proc"): Memory {
  const memory = parseMeminfo(fs.readFileSync(`${proc}/meminfo`, "latin1"));
  if (memory === undefined)
    throw new Failure("system_call_failed", "/proc/meminfo does not tell the memory of this machine");
  return memory;
}

/** x86 says "model name"; many arm64 machines say nothing there. */
export function parseCpuName(cpuinfo: string): string | undefined {
  return /^(?:model name|Model)\s*:\s*(\S.*)$/m.exec(cpuinfo)?.[1]?.trim();
}

export type Machine = {
  readonly hostname: string;
  readonly arch: string;
  readonly kernel: string;
  readonly cpuName: string;
  readonly cpuCount: number;
};

export function readMachine(): Machine {
  const cpuName = parseCpuName(fs.readFileSync("/proc/cpuinfo", "latin1")) ?? os.cpus()[0]?.model;
  return {
    hostname: os.hostname().slice(0, 256),
    arch: process.arch,
    kernel: os.release().slice(0, 256),
    cpuName: (cpuName === undefined || cpuName === "" ? `unknown ${process.arch} processor` : cpuName).slice(0, 256),
    cpuCount: Math.max(1, os.cpus().length),
  };
}

export function cpuDevice(machine: Machine, memory: Memory): Device {
  const vendor = /amd/i.test(machine.cpuName) ? "amd" : /intel/i.test(machine.cpuName) ? "intel" : "unknown";
  return {
    kind: "cpu",
    vendor,
    name: machine.cpuName,
    address: null,
    memoryBytes: memory.totalBytes,
    memoryAvailableBytes: memory.availableBytes,
    memoryCapBytes: null,
    unified: true,
    driver: null,
    state: "ok",
    reason: null,
  };
}
