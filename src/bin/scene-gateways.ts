// SPDX-License-Identifier: Apache-2.0
// The gateway process of a node, as its scenes see it.

import type { Launcher } from "../launcher/launcher.ts";
import { type GatewayPort, NO_GATEWAYS } from "../scenes/fronts.ts";
import type { Clock } from "../std/clock.ts";

export type GatewayOptions = { readonly root: string; readonly launcher: Launcher; readonly clock: Clock };

export function openGateways(_: GatewayOptions): GatewayPort {
  return NO_GATEWAYS;
}
