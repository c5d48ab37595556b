// SPDX-License-Identifier: Apache-2.0
// AMD's cards: the kernel tells their memory; amd-smi or rocm-smi, where there, the model and a second opinion. Pure.
// Rule: an integrated one lives in the machine's memory, of which GTT says how much it reaches; what is set apart for it is no
// measure of what it can hold. Source: amdgpu(4) sysfs, amd-smi and rocm-smi --json.

import { type Blocked, type Device, freeBytes, gpu, plausibleBytes, type Present, type ToolRun } from "./device.ts";

/** The tools in the order in which they are asked; the next one only when one is not installed. */
export const AMD_TOOLS = [
  { command: "amd-smi", parameters: ["static", "--asic", "--bus", "--vram", "--json"] },
  { command: "rocm-smi", parameters: ["--showproductname", "--showbus", "--showmeminfo", "vram", "--json"] },
] as const;

export type AmdRow = { readonly address: string; readonly name: string | null; readonly memoryBytes: number | null };

/** Both tools' JSON; what is no such answer has no rows. */
export function parseAmdRows(output: string): readonly AmdRow[] {
  // rocm-smi prints warnings before its object.
  const begin = output.search(/[[{]/);
  let answer: unknown;
  try {
    answer = JSON.parse(output.slice(Math.max(0, begin)));
  } catch {
    return [];
  }
  if (Array.isArray(answer)) return answer.flatMap(fromAmdSmi);
  const listed = at(answer, "gpu_data");
  if (Array.isArray(listed)) return listed.flatMap(fromAmdSmi);
  return typeof answer === "object" && answer !== null ? Object.values(answer).flatMap(fromRocmSmi) : [];
}

function fromAmdSmi(entry: unknown): readonly AmdRow[] {
  const address = text(at(at(entry, "bus"), "bdf"));
  if (address === null) return [];
  const size = at(at(entry, "vram"), "size");
  const mebibytes = Number(at(size, "value") ?? size);
  return [
    {
      address: address.toLowerCase(),
      name: text(at(at(entry, "asic"), "market_name")),
      memoryBytes: plausibleBytes(mebibytes * 2 ** 20),
    },
  ];
}

function fromRocmSmi(entry: unknown): readonly AmdRow[] {
  const address = text(at(entry, "PCI Bus"));
  if (address === null) return [];
  return [
    {
      address: address.toLowerCase(),
      name: text(at(entry, "Card Series") ?? at(entry, "Card series")),
      memoryBytes: plausibleBytes(Number(at(entry, "VRAM Total Memory (B)"))),
    },
  ];
}

function at(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined;
}

/** The tools write "N/A" for what they do not know. */
function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" && value !== "N/A" ? value : null;
}

/** Below this an unknown chip may be an integrated one with a small part set apart. */
const SMALL_BYTES = 2 * 2 ** 30;

export function joinAmd(card: Present, run: ToolRun, blocked: Blocked | undefined): Device {
  const rows = run.kind === "answered" ? parseAmdRows(run.output) : [];
  const row = rows.find(({ address }) => address === card.address);
  const unknown = card.deviceId === "" ? card.address : `[1002:${card.deviceId}] at ${card.address}`;
  const base = {
    vendor: "amd",
    name: card.model ?? row?.name ?? `AMD GPU ${unknown}`,
    address: card.address,
    driver: card.driver,
  } as const;
  if (card.driver !== "amdgpu") return gpu({ ...base, state: "driver-missing", reason: whyNoDriver(card.driver) });
  const known = { ...base, ...memoryOf(card, row) };
  if (blocked !== undefined) return gpu({ ...known, ...blocked });
  if (known.unified !== true && known.memoryBytes === null)
    return gpu({ ...known, state: "memory-unknown", reason: "neither amdgpu nor a tool tells its memory" });
  return gpu({ ...known, state: "ok", reason: noteOf(known, card, { run, rows, row }) });
}

function whyNoDriver(driver: string | null): string {
  if (driver === null) return "no driver is bound to it: load amdgpu: modprobe amdgpu";
  return driver === "vfio-pci"
    ? "vfio-pci drives it: it is given to a virtual machine"
    : `${driver} drives it: that is not amdgpu`;
}

type Memory = Pick<Device, "memoryBytes" | "memoryAvailableBytes" | "memoryCapBytes" | "unified">;

function memoryOf(card: Present, row: AmdRow | undefined): Memory {
  const own = card.memoryBytes ?? row?.memoryBytes ?? null;
  // Where most of the memory is set apart for it at boot, that part is its own and the machine does not see it.
  const isApart = own !== null && card.sharedBytes !== null && own >= card.sharedBytes;
  if (card.isIntegrated && !isApart)
    return { memoryBytes: null, memoryAvailableBytes: null, memoryCapBytes: card.sharedBytes, unified: true };
  const isCertain = card.isIntegrated || (own !== null && own >= SMALL_BYTES);
  return {
    memoryBytes: own,
    memoryAvailableBytes: freeBytes(own, card.memoryUsedBytes),
    memoryCapBytes: null,
    unified: isCertain ? false : null,
  };
}

type Told = { readonly run: ToolRun; readonly rows: readonly AmdRow[]; readonly row: AmdRow | undefined };

/** What a person should know of one that works; every tool is optional, and what it says wrong is told. */
function noteOf(memory: Memory, card: Present, { run, rows, row }: Told): string | null {
  const notes: string[] = [];
  if (memory.unified === true) notes.push("shares the memory of the machine, as far as GTT reaches");
  else if (card.isIntegrated) notes.push("integrated, with memory set apart for it");
  if (memory.unified === null) notes.push("not known to be integrated; only what is set apart for it is counted");
  if (run.kind === "hung") notes.push(`its tool did not answer within ${run.afterMs / 1000} s`);
  if (run.kind === "failed") notes.push(`its tool failed: ${run.message}`);
  if (rows.length > 0 && row === undefined) notes.push("the kernel shows it, its tool does not");
  const [kernel, tool] = [card.memoryBytes ?? 0, row?.memoryBytes ?? 0];
  // The tools round to MiB, and some leave out what firmware holds.
  if (kernel > 0 && tool > 0 && Math.abs(kernel - tool) > kernel / 20)
    notes.push(`the kernel tells ${mib(kernel)}, its tool ${mib(tool)}`);
  return notes.length === 0 ? null : notes.join("; ");
}

const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
