// SPDX-License-Identifier: Apache-2.0
// A log that keeps its lines, for tests of what an operator is told.

import type { Log } from "../../src/std/log.ts";

export type KeptLog = Log & { readonly lines: readonly string[] };

export function keptLog(): KeptLog {
  const lines: string[] = [];
  const keep =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const log: KeptLog = {
    lines,
    debug: keep("debug"),
    info: keep("info"),
    warn: keep("warn"),
    error: keep("error"),
    child: () => log,
  };
  return log;
}
