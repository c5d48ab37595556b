// SPDX-License-Identifier: Apache-2.0
// What a person does about a device that is not ok, by its state. Its reason says which node, group, driver or card it is.

import type { Device } from "./node-schema.ts";

const advices: { readonly [state in Device["state"]]: string } = {
  ok: "",
  unreadable:
    "Give its agent's account what the reason names, or run holdfast devices protect there; then restart the agent.",
  "node-missing":
    "Run holdfast devices protect there, which makes the node and keeps it, or load the rest of the driver.",
  "driver-missing": "Install or load the driver; what runs jobs is the vendor's own.",
  "driver-mismatch":
    "Reboot that machine, or unload and load the driver: an update replaced its library and not the loaded driver.",
  "tool-missing": "Install the tool of the driver's version where the agent's account finds it, such as /usr/bin.",
  "tool-hung": "Look at dmesg there; a driver that hangs needs a reboot.",
  lost: "Look at dmesg there and reboot; a card that goes again has a fault of power, heat or seating.",
  "memory-unknown": "Jobs that need a GPU's memory do not go there, because what it has is not guessed.",
};

export function deviceAdvice({ state }: Pick<Device, "state">): string {
  return advices[state];
}
