// SPDX-License-Identifier: Apache-2.0
// Intel's graphics, as the kernel tells them. Pure. Rule: the one at 00:02.0 is the processor's own and shares the machine's
// memory; a card's memory is told by few drivers, and unknown otherwise.

import { type Blocked, type Device, gpu, type Present } from "./device.ts";

export function joinIntel(card: Present, blocked: Blocked | undefined): Device {
  const unknown = card.deviceId === "" ? card.address : `[8086:${card.deviceId}] at ${card.address}`;
  const base = {
    vendor: "intel",
    name: card.model ?? `Intel GPU ${unknown}`,
    address: card.address,
    driver: card.driver,
  } as const;
  if (card.driver !== "i915" && card.driver !== "xe")
    return gpu({
      ...base,
      state: "driver-missing",
      reason: card.driver === null ? "no driver is bound to it: load i915 or xe" : `${card.driver} drives it`,
    });
  if (card.isIntegrated) {
    const known = { ...base, unified: true };
    return gpu({ ...known, ...(blocked ?? { state: "ok", reason: "shares the memory of the machine" }) });
  }
  const known = { ...base, memoryBytes: card.memoryBytes, unified: card.memoryBytes === null ? null : false };
  if (blocked !== undefined) return gpu({ ...known, ...blocked });
  if (card.memoryBytes === null)
    return gpu({ ...known, state: "memory-unknown", reason: `${card.driver} does not tell its memory` });
  return gpu({ ...known, state: "ok", reason: null });
}
