// SPDX-License-Identifier: Apache-2.0
// From the environment to decided values, in one place: which root, which database, which address. All faults at once.

import os from "node:os";
import path from "node:path";
import { Failure, type Fault } from "../std/errors.ts";
import type { ControllerConfig } from "../controller/context.ts";

export const DEFAULT_PORT = 7440;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where everything of this machine lives: /var/lib/holdfast for root, below the home directory else. */
export function rootFrom(env: Environment, option?: string): string {
  const given = option ?? env["HOLDFAST_ROOT"];
  if (given !== undefined && given !== "") {
    if (!path.isAbsolute(given))
      throw new Failure("root_unusable", `HOLDFAST_ROOT must be an absolute path, not ${given}`);
    return path.normalize(given);
  }
  if (os.userInfo().uid === 0) return "/var/lib/holdfast";
  return path.join(env["XDG_DATA_HOME"] ?? path.join(os.homedir(), ".local/share"), "holdfast");
}

export type Listen = { readonly host: string; readonly port: number };

/** HOST:PORT, :PORT or PORT; an IPv6 address in brackets. */
export function listenFrom(env: Environment, option?: string): Listen {
  const given = option ?? env["HOLDFAST_LISTEN"] ?? `127.0.0.1:${DEFAULT_PORT}`;
  const match = /^(?:(\[[0-9a-fA-F:.]+\]|[^:[\]]*):)?(\d{1,5})$/.exec(given);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new Failure("config_invalid", `the address to listen on is HOST:PORT, not ${given}`, {
      details: [{ place: option === undefined ? "HOLDFAST_LISTEN" : "--listen", problem: `${given} is not HOST:PORT` }],
    });
  }
  const host = (match[1] ?? "").replace(/^\[|\]$/g, "");
  return { host: host === "" ? "127.0.0.1" : host, port };
}

const logLevels = ["debug", "info", "warn", "error"] as const;

export function logLevelFrom(env: Environment): (typeof logLevels)[number] {
  const given = env["HOLDFAST_LOG_LEVEL"] ?? "info";
  const level = logLevels.find((known) => known === given);
  if (level !== undefined) return level;
  const problem = `must be one of ${logLevels.join(", ")}, not ${given}`;
  throw new Failure("config_invalid", `HOLDFAST_LOG_LEVEL ${problem}`, {
    details: [{ place: "HOLDFAST_LOG_LEVEL", problem }],
  });
}

/** Durations that tests scale down; an operator has little reason to. */
const durations = {
  HOLDFAST_LEASE_MS: "leaseMs",
  HOLDFAST_START_WITHIN_MS: "startWithinMs",
  HOLDFAST_HEARTBEAT_MS: "heartbeatMs",
  HOLDFAST_RENEW_MS: "renewMs",
  HOLDFAST_SWEEP_MS: "sweepMs",
  HOLDFAST_POLL_MS: "pollMs",
  HOLDFAST_PROBE_MS: "probeMs",
  HOLDFAST_PROBE_WITHIN_MS: "probeWithinMs",
  HOLDFAST_RETRY_BASE_MS: "retryBaseMs",
} as const satisfies Record<string, keyof ControllerConfig>;

export function configFrom(env: Environment): Partial<ControllerConfig> {
  const faults: Fault[] = [];
  const config: Record<string, number> = {};
  for (const [variable, key] of Object.entries(durations)) {
    const text = env[variable];
    if (text === undefined) continue;
    const value = Number(text);
    if (Number.isInteger(value) && value >= 10 && value <= 86_400_000) config[key] = value;
    else faults.push({ place: variable, problem: `must be whole milliseconds from 10 to 86400000, not ${text}` });
  }
  if (faults.length > 0)
    throw new Failure("config_invalid", `${faults.length} setting${faults.length > 1 ? "s are" : " is"} not valid`, {
      details: faults,
    });
  return config;
}
