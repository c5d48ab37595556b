// SPDX-License-Identifier: Apache-2.0
// Why nvidia-smi told nothing of a card that the kernel shows. Pure. Rule: the first fault of the chain driver, library,
// card, node, tool is told, because the later ones follow from it.
// Source: the return values of nvidia-smi(1), which are NVML's.

import type { Blocked, DeviceState, Present, ToolRun } from "./device.ts";

type Why = { readonly state: DeviceState; readonly reason: string };

const STATUS = { noPermission: 4, noDriver: 9, noLibrary: 12, lost: 15, mismatch: 18 } as const;

export function whyUnread(card: Present, run: ToolRun, blocked: Blocked | undefined): Why {
  return withoutDriver(card) ?? mismatched(run) ?? lost(card, run) ?? blocked ?? untold(card, run);
}

function withoutDriver({ driver }: Present): Why | undefined {
  if (driver === "nvidia") return undefined;
  if (driver === null)
    return {
      state: "driver-missing",
      reason: "no driver is bound to it: install NVIDIA's, or load it: modprobe nvidia",
    };
  const what = driver === "vfio-pci" ? "it is given to a virtual machine" : "that is not NVIDIA's own driver";
  return { state: "driver-missing", reason: `${driver} drives it: ${what}` };
}

function mismatched(run: ToolRun): Why | undefined {
  if (run.kind !== "failed") return undefined;
  if (run.status !== STATUS.mismatch && !/driver\/library version mismatch/i.test(run.message)) return undefined;
  return {
    state: "driver-mismatch",
    reason: "the driver in the kernel and NVIDIA's library are of different versions: reboot, or reload the driver",
  };
}

const LOST = /GPU is lost|fallen off the bus|unable to determine the device handle/i;

/** "Unable to determine the device handle for GPU3: 0000:5F:00.0: Unknown Error", with or without the number or address. */
function lost(card: Present, run: ToolRun): Why | undefined {
  const said = run.kind === "answered" ? `${run.output}\n${run.complaint}` : run.kind === "failed" ? run.message : "";
  const lines = said.split("\n").filter((line) => LOST.test(line));
  const named = lines.find((line) => line.toLowerCase().includes(card.address));
  // A line without an address is of one of those that did not answer, and this is one.
  const line = named ?? lines.find((other) => !/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}/i.test(other));
  if (line === undefined && !(run.kind === "failed" && run.status === STATUS.lost)) return undefined;
  const words = (line ?? "GPU is lost").trim().replace(/\.?$/, "");
  return { state: "lost", reason: `${words}: reboot the machine; dmesg has the Xid` };
}

function untold(card: Present, run: ToolRun): Why {
  if (run.kind === "hung")
    return { state: "tool-hung", reason: `nvidia-smi did not answer within ${run.afterMs / 1000} s` };
  if (run.kind === "missing") return { state: "tool-missing", reason: "nvidia-smi is not in the path of this account" };
  if (run.kind === "answered")
    return {
      state: "lost",
      reason: `the kernel shows it at ${card.address}, nvidia-smi does not: dmesg says why its driver gave it up`,
    };
  const reason = `nvidia-smi: ${run.message}`;
  if (run.status === STATUS.noDriver)
    return { state: "driver-missing", reason: `${reason} (the kernel shows nvidia bound to it)` };
  if (run.status === STATUS.noLibrary) return { state: "tool-missing", reason };
  return { state: "unreadable", reason };
}
