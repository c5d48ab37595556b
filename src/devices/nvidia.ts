// SPDX-License-Identifier: Apache-2.0
// NVIDIA's cards: what nvidia-smi says, joined with what the kernel shows. Pure. Rule: [N/A] is unknown; only a device that
// is known to be integrated is called unified; where kernel and tool disagree, the disagreement is told.

import { type Blocked, type Device, gpu, plausibleBytes, type Present, type ToolRun } from "./device.ts";
import { freeOf, mebibytes, shortAddress } from "./nvidia-cells.ts";
import { parseSlices, type Slice, sliceDevice } from "./nvidia-slices.ts";
import { whyUnread } from "./nvidia-unread.ts";

export const NVIDIA_QUERY = [
  "--query-gpu=pci.bus_id,name,memory.used,memory.free,memory.total,driver_version",
  "--format=csv,noheader,nounits",
] as const;

export type NvidiaRow = {
  readonly address: string;
  readonly name: string;
  readonly memoryBytes: number | null;
  readonly memoryFreeBytes: number | null;
  readonly driver: string | null;
};

/** GPU and CPU on one memory: the reported total is not the GPU's own. */
const INTEGRATED = /\b(GB10|Orin|Xavier|Thor|Tegra)\b/;
/** Of a GB10's 121.7 GiB about 101 can be had by CUDA (measured); what others let is not known. */
const GB10_REACHABLE = 0.83;

export function parseNvidiaRows(output: string): readonly NvidiaRow[] {
  return output.split("\n").flatMap((line) => {
    const cells = line.split(",").map((cell) => cell.trim());
    const [address = ""] = cells;
    const [used = "", free = "", total = "", driver = ""] = cells.slice(-4);
    // A name could hold a comma; a line of another kind ("Unable to determine the device handle …") has no address.
    if (cells.length < 6 || !/^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/i.test(address)) return [];
    const memoryBytes = plausibleBytes(mebibytes(total));
    return [
      {
        address: shortAddress(address),
        name: cells.slice(1, -4).join(", "),
        memoryBytes,
        memoryFreeBytes: freeOf(memoryBytes, mebibytes(free), mebibytes(used)),
        driver: driver === "" || driver.startsWith("[") || driver === "N/A" ? null : driver,
      },
    ];
  });
}

export type NvidiaAnswers = {
  /** nvidia-smi with NVIDIA_QUERY. */
  readonly run: ToolRun;
  /** nvidia-smi -q -x and nvidia-smi -L, asked when a card may be cut into slices. */
  readonly details?: ToolRun;
  readonly listing?: ToolRun;
  readonly blocked: (card: Present | undefined) => Blocked | undefined;
  readonly machineMemoryBytes: number;
  /** The kernel of Windows shows its cards in another way. */
  readonly isWindows: boolean;
};

/** Every card that either side knows; one that is cut into slices is its slices. */
export function joinNvidia(present: readonly Present[], answers: NvidiaAnswers): readonly Device[] {
  const { run, details, listing } = answers;
  const rows = run.kind === "answered" ? parseNvidiaRows(run.output) : [];
  const slices = details?.kind === "answered" ? parseSlices(details.output, outputOf(listing)) : [];
  const unseen = present.filter((card) => !rows.some((row) => row.address === card.address));
  return [
    ...rows.flatMap((row) => {
      const card = present.find(({ address }) => address === row.address);
      return fromRow(row, card, { answers, slices: slices.filter(({ parent }) => parent === row.address) });
    }),
    ...unseen.flatMap((card) => {
      const own = slices.filter(({ parent }) => parent === card.address);
      const blocked = answers.blocked(card);
      return own.length > 0
        ? own.map((slice) => sliceDevice(slice, card.driver, blocked))
        : [withoutRow(card, answers)];
    }),
  ];
}

/** A card may be in slices when the kernel says so, or when its memory is not told and it should have some. */
export function mayHaveSlices(present: readonly Present[], run: ToolRun): boolean {
  if (present.some((card) => card.hasSlices)) return true;
  const rows = run.kind === "answered" ? parseNvidiaRows(run.output) : [];
  return rows.some((row) => row.memoryBytes === null && !INTEGRATED.test(row.name));
}

function outputOf(run: ToolRun | undefined): string {
  return run?.kind === "answered" ? run.output : "";
}

type RowContext = { readonly answers: NvidiaAnswers; readonly slices: readonly Slice[] };

function fromRow(row: NvidiaRow, card: Present | undefined, { answers, slices }: RowContext): readonly Device[] {
  const blocked = answers.blocked(card);
  if (slices.length > 0) return slices.map((slice) => sliceDevice(slice, row.driver, blocked));
  const base = { vendor: "nvidia", name: row.name, address: row.address, driver: row.driver } as const;
  if (INTEGRATED.test(row.name)) {
    const cap = /\bGB10\b/.test(row.name) ? Math.floor(answers.machineMemoryBytes * GB10_REACHABLE) : null;
    const known = { ...base, unified: true, memoryCapBytes: cap } as const;
    return [gpu({ ...known, ...(blocked ?? { state: "ok", reason: "shares the memory of the machine" }) })];
  }
  const memory = { memoryBytes: row.memoryBytes, memoryAvailableBytes: row.memoryFreeBytes };
  const known = { ...base, ...memory, unified: row.memoryBytes === null ? null : false };
  if (blocked !== undefined) return [gpu({ ...known, ...blocked })];
  if (row.memoryBytes === null) return [gpu({ ...known, state: "memory-unknown", reason: whyNoMemory(card) })];
  const isSeen = card !== undefined || answers.isWindows;
  return [gpu({ ...known, state: "ok", reason: isSeen ? null : "nvidia-smi shows it, the kernel's /sys does not" })];
}

function whyNoMemory(card: Present | undefined): string {
  return card?.hasSlices === true
    ? "it is cut into MIG slices, and nvidia-smi does not list them for this account"
    : "nvidia-smi does not tell its memory, and it is not known to share the machine's";
}

function withoutRow(card: Present, { run, blocked }: NvidiaAnswers): Device {
  const unknown = card.deviceId === "" ? card.address : `[10de:${card.deviceId}] at ${card.address}`;
  return gpu({
    vendor: "nvidia",
    name: card.model ?? `NVIDIA GPU ${unknown}`,
    address: card.address,
    driver: card.driver,
    ...whyUnread(card, run, blocked(card)),
  });
}
