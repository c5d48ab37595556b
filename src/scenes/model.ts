// SPDX-License-Identifier: Apache-2.0
// A model server of scenes.yaml, decided, and what makes two of them the same.

import { createHash } from "node:crypto";
import type { Marker, Place } from "../std/marker.ts";
import type { Environment } from "./expand.ts";

export type Model = {
  readonly name: string;
  readonly argv: readonly string[];
  /** Holds secrets: never shown. */
  readonly environment: Environment;
  /** Undefined: an empty folder of its own. */
  readonly workingDirectory: string | undefined;
  /** Where it is asked. */
  readonly place: Place;
  readonly health: string | undefined;
  readonly marker: Marker;
  readonly memoryBytes: number | undefined;
  readonly startTimeoutMs: number;
  readonly stallTimeoutMs: number;
  readonly stopGraceMs: number;
  /** SHA-256 over all that makes it another process: command, environment, port, marker. */
  readonly spec: string;
};

/** SHA-256 over these parts, whatever their order. */
export function specOf(parts: { readonly [part: string]: unknown }): string {
  return createHash("sha256").update(JSON.stringify(parts, sortedKeys)).digest("hex");
}

function sortedKeys(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** By this two markers are the same one. */
export function markerHash({ path: asked, pointer, value }: Marker): string {
  return specOf({ asked, pointer, value });
}
