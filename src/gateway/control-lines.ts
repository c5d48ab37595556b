// SPDX-License-Identifier: Apache-2.0
// What goes over a control socket: a line of JSON asks, a line answers, in order. Rule: a line has a limit, and whoever sends a
// longer one is cut off.

import type net from "node:net";
import type { Fault } from "../std/errors.ts";
import type { GatewaySeen, ListenFailed } from "./gateway.ts";
import type { Table } from "./table.ts";

export const LINE_BYTES_MAX = 4 * 1024 * 1024;

export type Asked =
  | { readonly set: Table; readonly generation: number }
  | { readonly status: true }
  | { readonly metrics: true };

export type Answered =
  | { readonly ok: true; readonly generation: number; readonly failed: readonly ListenFailed[] }
  | { readonly ok: true; readonly status: GatewaySeen }
  | { readonly ok: true; readonly metrics: string }
  /** generation: of the table that is there, when that is newer. */
  | {
      readonly ok: false;
      readonly code: "invalid_request" | "stale_generation";
      readonly message: string;
      readonly details: readonly Fault[];
      readonly generation?: number;
    };

/** Calls onLine for each whole line; destroys the socket when one is too long. */
export function readLines(socket: net.Socket, onLine: (line: string) => void): void {
  let pieces: Buffer[] = [];
  let size = 0;
  socket.on("data", (chunk: Buffer) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...pieces, chunk.subarray(from, end)]).toString();
      pieces = [];
      size = 0;
      from = end + 1;
      onLine(line);
    }
    size += chunk.length - from;
    if (size > LINE_BYTES_MAX) socket.destroy(new Error(`a line of more than ${LINE_BYTES_MAX} bytes`));
    else pieces.push(chunk.subarray(from));
  });
}
