// SPDX-License-Identifier: Apache-2.0
// Who may call a route, by name.

export const read = { kind: "people", scope: "fleet:read" } as const;
export const write = { kind: "people", scope: "fleet:write" } as const;
export const admin = { kind: "people", scope: "fleet:admin" } as const;
export const heartbeat = { kind: "node", scope: "node:heartbeat" } as const;
export const claim = { kind: "node", scope: "node:claim" } as const;
export const report = { kind: "node", scope: "node:report" } as const;
