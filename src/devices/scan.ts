// SPDX-License-Identifier: Apache-2.0
// One look at all GPUs: presence from the kernel, access by opening their nodes, numbers from the vendors' tools, each in a
// child with a deadline and as the agent's account. Rule: every tool may be missing, and none of them hides a card.

import fs from "node:fs";
import path from "node:path";
import { openNodes, type Opener, whyBlocked } from "./access.ts";
import { AMD_TOOLS, joinAmd } from "./amd.ts";
import type { Blocked, Device, Present, ToolRun } from "./device.ts";
import { joinIntel } from "./intel.ts";
import { isJetson, joinJetson } from "./jetson.ts";
import { REAL_ROOTS, type Roots } from "./kernel-files.ts";
import { readKernelGpus } from "./kernel-gpus.ts";
import { readMemory } from "./machine.ts";
import { joinNvidia, mayHaveSlices, NVIDIA_QUERY } from "./nvidia.ts";
import { runTool, type ToolOptions } from "./tool.ts";

/** Whom and what a look concerns; roots and tools other than this machine's only in tests. */
export type Surroundings = {
  readonly opener: Opener;
  /** Name of the account that looks, for its messages. */
  readonly account: string;
  readonly roots?: Roots;
  readonly tools?: ToolOptions;
};

export async function scanGpus(around: Surroundings): Promise<readonly Device[]> {
  const roots = around.roots ?? REAL_ROOTS;
  const present = readKernelGpus(roots);
  const blocks = await blocksOf(present, roots, around);
  const jetson = present.find(isJetson);
  const cards = present.filter((card) => card.vendor === "nvidia" && card !== jetson);
  const [nvidia, amd] = await Promise.all([
    jetson === undefined || cards.length > 0 ? scanNvidia(cards, blocks, around) : [],
    scanAmd(
      present.filter((card) => card.vendor === "amd"),
      blocks,
      around,
    ),
  ]);
  const intel = present.filter((card) => card.vendor === "intel");
  return [
    ...(jetson === undefined ? [] : [joinJetson(jetson, blocks.get(jetson.address), roots)]),
    ...nvidia,
    ...amd,
    ...intel.map((card) => joinIntel(card, blocks.get(card.address))),
  ];
}

type Blocks = ReadonlyMap<string, Blocked | undefined>;

/** One child opens the nodes of all; only when that hangs, one for each card finds out whose it is. */
async function blocksOf(present: readonly Present[], roots: Roots, around: Surroundings): Promise<Blocks> {
  // Without its driver it has no nodes, and that is told instead.
  const driven = present.filter((card) => card.driver !== null);
  const deadline = around.tools?.deadlineMs === undefined ? {} : { deadlineMs: around.tools.deadlineMs };
  const open = (cards: readonly Present[]): ReturnType<typeof openNodes> => {
    const nodes = [...new Set(cards.flatMap((card) => card.nodes))];
    return openNodes(
      around.opener,
      nodes.map((node) => path.join(roots.dev, node)),
      deadline,
    );
  };
  const all = await open(driven);
  const found = driven.map(async (card) => {
    const opened = "failed" in all && driven.length > 1 ? await open([card]) : all;
    return [card.address, whyBlocked(card.nodes, opened, { roots, account: around.account })] as const;
  });
  return new Map(await Promise.all(found));
}

async function scanNvidia(cards: readonly Present[], blocks: Blocks, around: Surroundings): Promise<readonly Device[]> {
  const roots = around.roots ?? REAL_ROOTS;
  const ask = (...parameters: readonly string[]): Promise<ToolRun> => runTool("nvidia-smi", parameters, around.tools);
  const run = await ask(...NVIDIA_QUERY);
  const [details, listing] = mayHaveSlices(cards, run) ? await Promise.all([ask("-q", "-x"), ask("-L")]) : [];
  return joinNvidia(cards, {
    run,
    ...(details === undefined ? {} : { details }),
    ...(listing === undefined ? {} : { listing }),
    blocked: (card) => (card === undefined ? undefined : blocks.get(card.address)),
    machineMemoryBytes: readMemory(roots.proc).totalBytes,
    isWindows: fs.existsSync(path.join(roots.dev, "dxg")),
  });
}

async function scanAmd(cards: readonly Present[], blocks: Blocks, around: Surroundings): Promise<readonly Device[]> {
  if (cards.length === 0) return [];
  let run: ToolRun = { kind: "missing" };
  for (const { command, parameters } of AMD_TOOLS) {
    if (run.kind === "missing") run = await runTool(command, parameters, around.tools);
  }
  return cards.map((card) => joinAmd(card, run, blocks.get(card.address)));
}
