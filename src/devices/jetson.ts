// SPDX-License-Identifier: Apache-2.0
// NVIDIA's Jetson: one chip, no PCI, often no nvidia-smi. It is known by its device tree; that a tool is missing is no fault.
// Source: Jetson Linux, R35 and R36.

import fs from "node:fs";
import path from "node:path";
import { type Blocked, type Device, gpu, type Present } from "./device.ts";
import { linkName, listNames, readText, type Roots } from "./kernel-files.ts";

/** Every one of them needs the first; which of the others there is depends on the release. */
const MEMORY_NODE = "nvmap";
const CHANNEL_NODES = ["nvgpu/igpu0/ctrl", "nvhost-ctrl-gpu", "nvhost-gpu"];

/** Whether a GPU that the kernel shows is one of these. */
export function isJetson(card: Present): boolean {
  return card.vendor === "nvidia" && card.nodes.includes(MEMORY_NODE);
}

export function jetsonGpu(roots: Roots): Present | undefined {
  const tree = path.join(roots.proc, "device-tree");
  if (!/\bnvidia,tegra/.test(readText(tree, "compatible") ?? "")) return undefined;
  const places = ["devices/platform/bus@0", "devices/platform", "devices"];
  const found = places
    .flatMap((place) => listNames(roots.sys, place).map((name) => path.join(place, name)))
    .find((name) => /(^|\/)(\w+\.(gpu|ga10b|gv11b|gp10b)|gpu\.0)$/.test(name));
  if (found === undefined) return undefined;
  const channel = CHANNEL_NODES.find((node) => fs.existsSync(path.join(roots.dev, node))) ?? CHANNEL_NODES[1];
  return {
    address: path.basename(found),
    vendor: "nvidia",
    deviceId: "",
    model: readText(tree, "model") ?? "NVIDIA Jetson",
    driver: linkName(roots.sys, found, "driver") ?? null,
    nodes: [MEMORY_NODE, ...(channel === undefined ? [] : [channel])],
    isIntegrated: true,
    memoryBytes: null,
    memoryUsedBytes: null,
    sharedBytes: null,
    hasSlices: false,
  };
}

export function joinJetson(card: Present, blocked: Blocked | undefined, roots: Roots): Device {
  const base = { vendor: "nvidia", name: card.model ?? "NVIDIA Jetson", address: card.address, unified: true } as const;
  if (card.driver === null)
    return gpu({ ...base, state: "driver-missing", reason: "no driver is bound to it: nvgpu is not loaded" });
  const driver = jetsonRelease(readText(roots.etc, "nv_tegra_release") ?? "") ?? card.driver;
  if (blocked !== undefined) return gpu({ ...base, driver, ...blocked });
  return gpu({ ...base, driver, state: "ok", reason: "shares the memory of the machine" });
}

/** "# R36 (release), REVISION: 4.3, GCID: …" */
export function jetsonRelease(text: string): string | undefined {
  const [, release, revision] = /^# R(\d+) \(release\), REVISION: ([\d.]+)/.exec(text) ?? [];
  return release === undefined || revision === undefined ? undefined : `L4T R${release}.${revision}`;
}
