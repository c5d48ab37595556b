// SPDX-License-Identifier: Apache-2.0
// MIG: a card cut into slices, each of which is a device with its own memory. Pure. Rule: what is unknown or forbidden of
// the card itself takes nothing from its slices. Source: nvidia-smi -q -x (nvsmi_device_v12.dtd) and nvidia-smi -L.

import { type Blocked, type Device, gpu, plausibleBytes } from "./device.ts";
import { freeOf, mebibytes, shortAddress } from "./nvidia-cells.ts";

export type Slice = {
  /** Address of its card. */
  readonly parent: string;
  /** Address of its own: "0000:01:00.0/gi2/ci0". */
  readonly address: string;
  readonly name: string;
  readonly memoryBytes: number | null;
  readonly memoryFreeBytes: number | null;
};

/** The names of the profiles come from the listing, where there is one. */
export function parseSlices(xml: string, listing: string): readonly Slice[] {
  const profiles = parseProfiles(listing);
  return [...xml.matchAll(/<gpu id="([^"]+)">([\s\S]*?)<\/gpu>\s*(?=<gpu id=|<\/nvidia_smi_log>|$)/g)].flatMap(
    ([, id = "", card = ""], index) => {
      const parent = shortAddress(id);
      const model = element(card, "product_name") ?? "NVIDIA GPU";
      return [...card.matchAll(/<mig_device>([\s\S]*?)<\/mig_device>/g)].map(([, slice = ""], order) => {
        const number = element(slice, "index") ?? String(order);
        const profile = profiles.get(`${index}/${number}`) ?? `MIG slice ${number}`;
        const memory = element(slice, "fb_memory_usage") ?? "";
        const total = plausibleBytes(mebibytes(element(memory, "total")));
        const place = `gi${element(slice, "gpu_instance_id") ?? "?"}/ci${element(slice, "compute_instance_id") ?? "?"}`;
        const [free, used] = [mebibytes(element(memory, "free")), mebibytes(element(memory, "used"))];
        return {
          parent,
          address: `${parent}/${place}`,
          name: `${model} ${profile}`,
          memoryBytes: total,
          memoryFreeBytes: freeOf(total, free, used),
        };
      });
    },
  );
}

export function sliceDevice(slice: Slice, driver: string | null, blocked: Blocked | undefined): Device {
  const known = {
    vendor: "nvidia",
    name: slice.name,
    address: slice.address,
    memoryBytes: slice.memoryBytes,
    memoryAvailableBytes: slice.memoryFreeBytes,
    unified: slice.memoryBytes === null ? null : false,
    driver,
  };
  if (blocked !== undefined) return gpu({ ...known, ...blocked });
  if (slice.memoryBytes === null)
    return gpu({ ...known, state: "memory-unknown", reason: "nvidia-smi does not tell the memory of this slice" });
  return gpu({ ...known, state: "ok", reason: null });
}

/** "GPU 0: NVIDIA A100 (UUID: …)" and below it "  MIG 3g.20gb     Device  0: (UUID: …)": by card and number of the slice. */
function parseProfiles(listing: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let card = -1;
  for (const line of listing.split("\n")) {
    if (/^GPU \d+:/.test(line)) card += 1;
    const [, profile, number] = /^\s+MIG\s+(\S+)\s+Device\s+(\d+):/.exec(line) ?? [];
    if (profile !== undefined && number !== undefined) found.set(`${card}/${number}`, `MIG ${profile}`);
  }
  return found;
}

function element(text: string, name: string): string | undefined {
  return new RegExp(`<${name}>([\\s\\S]*?)</${name}>`).exec(text)?.[1]?.trim();
}
