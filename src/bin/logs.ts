// SPDX-License-Identifier: Apache-2.0
// Where a program's log goes: JSON lines by pino, to standard error or to a file of its own (0600). Secrets never enter it.

import fs from "node:fs";
import { pino } from "pino";
import { fileFailure } from "../std/files.ts";
import type { Log } from "../std/log.ts";
import { type Environment, logLevelFrom } from "./settings.ts";

/** A log of more than this is moved aside to FILE.1 at the next start. */
const LOG_BYTES_MAX = 16 * 1024 * 1024;

const options = {
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (label: string) => ({ level: label }) },
};

/** JSON lines; on a terminal, lines for people. */
export async function stderrLog(env: Environment): Promise<Log> {
  const level = logLevelFrom(env);
  // A logger of pino looks like a promise to TypeScript.
  const json = (): Log => pino({ ...options, level }, pino.destination({ fd: 2, sync: true }));
  if (!process.stderr.isTTY) return json();
  const { default: pretty } = await import("pino-pretty");
  const stream = pretty({ destination: 2, sync: true, translateTime: "SYS:HH:MM:ss" });
  const log: Log = pino({ base: null, level }, stream);
  return log;
}

export function fileLog(file: string, env: Environment = {}): Log {
  return pino({ ...options, level: logLevelFrom(env) }, pino.destination({ fd: openLogFile(file), sync: true }));
}

/** Opens a log file for appending, readable by its owner only; an overlong one is moved aside first. */
export function openLogFile(file: string): number {
  try {
    if (fs.existsSync(file) && fs.statSync(file).size > LOG_BYTES_MAX) fs.renameSync(file, `${file}.1`);
    return fs.openSync(file, "a", 0o600);
  } catch (error) {
    throw fileFailure(file, error);
  }
}
