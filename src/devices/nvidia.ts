// SPDX-License-Identifier: Apache-2.0
// NVIDIA's cards: what nvidia-smi says, joined with what the kernel shows. Pure. Rule: [N/A] is unknown; only a device that
// is known to be integrated is called unified.

import type { Device, DeviceState, Present } from "./device.ts";

export const NVIDIA_QUERY = [
  "--query-gpu=pci.bus_id,name,memory.total,driver_version",
  "--format=csv,noheader,nounits",
] as const;

export type NvidiaRow = {
  readonly address: string;
  readonly name: string;
  readonly memoryBytes: number | null;
  readonly driver: string | null;
};

/** How the tool ended. */
export type ToolRun =
  | { readonly kind: "answered"; readonly output: string }
  /** Not installed where this account looks. */
  | { readonly kind: "missing" }
  | { readonly kind: "hung"; readonly afterMs: number }
  | { readonly kind: "failed"; readonly message: string };

/** GPU and CPU on one memory: the reported total is not the GPU's own. */
const INTEGRATED = /\b(GB10|Orin|Xavier|Thor|Tegra)\b/;

export function parseNvidiaRows(output: string): readonly NvidiaRow[] {
  return output.split("\n").flatMap((line) => {
    const cells = line.split(",").map((cell) => cell.trim());
    const [address, memory, driver] = [cells[0] ?? "", cells.at(-2) ?? "", cells.at(-1) ?? ""];
    // A name could hold a comma; a line of another kind ("Unable to determine the device handle …") has no address.
    if (cells.length < 4 || !/^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/i.test(address)) return [];
    const mebibytes = /^\d+$/.test(memory) ? Number(memory) : null;
    return [
      {
        address: shortAddress(address),
        name: cells.slice(1, -2).join(", "),
        memoryBytes: mebibytes === null || mebibytes === 0 ? null : mebibytes * 2 ** 20,
        driver: known(driver),
      },
    ];
  });
}

function known(cell: string): string | null {
  return cell === "" || cell.startsWith("[") || cell === "N/A" ? null : cell;
}

/** nvidia-smi writes an 8-digit domain, the kernel a 4-digit one. */
export function shortAddress(address: string): string {
  return address.toLowerCase().replace(/^0{4}(?=[0-9a-f]{4}:)/, "");
}

/** Every card that either side knows. */
export function joinNvidia(present: readonly Present[], run: ToolRun): readonly Device[] {
  const rows = run.kind === "answered" ? parseNvidiaRows(run.output) : [];
  const unseen = present.filter((card) => !rows.some((row) => row.address === card.address));
  return [...rows.map(fromRow), ...unseen.map((card) => withoutRow(card, run))];
}

function fromRow(row: NvidiaRow): Device {
  const base = {
    kind: "gpu",
    vendor: "nvidia",
    name: row.name.slice(0, 256),
    address: row.address,
    memoryBytes: row.memoryBytes,
    memoryAvailableBytes: null,
    memoryCapBytes: null,
    driver: row.driver?.slice(0, 256) ?? null,
  } as const;
  if (INTEGRATED.test(row.name)) {
    return { ...base, unified: true, state: "ok", reason: "shares the memory of the machine" };
  }
  if (row.memoryBytes === null) {
    return {
      ...base,
      unified: null,
      state: "memory-unknown",
      reason: "nvidia-smi does not tell its memory, and it is not known to share the machine's",
    };
  }
  return { ...base, unified: false, state: "ok", reason: null };
}

function withoutRow(card: Present, run: ToolRun): Device {
  const [state, reason] = whyUnread(card, run);
  const name =
    card.model ?? `NVIDIA GPU ${card.deviceId === "" ? card.address : `[10de:${card.deviceId}] at ${card.address}`}`;
  return {
    kind: "gpu",
    vendor: "nvidia",
    name,
    address: card.address,
    memoryBytes: null,
    memoryAvailableBytes: null,
    memoryCapBytes: null,
    unified: null,
    driver: card.driver,
    state,
    reason: reason.slice(0, 512),
  };
}

function whyUnread(card: Present, run: ToolRun): readonly [DeviceState, string] {
  if (run.kind === "hung") return ["tool-hung", `nvidia-smi did not answer within ${run.afterMs / 1000} s`];
  if (run.kind === "failed") return ["unreadable", `nvidia-smi: ${run.message}`];
  if (run.kind === "answered") return ["unreadable", `the kernel shows it at ${card.address}, nvidia-smi does not`];
  if (card.driver === null) return ["tool-missing", "no driver is bound to it, and nvidia-smi is not installed"];
  if (card.driver !== "nvidia")
    return ["tool-missing", `it is driven by ${card.driver}, not by NVIDIA's driver; nvidia-smi is not installed`];
  return ["tool-missing", "nvidia-smi is not in the path of this account"];
}
