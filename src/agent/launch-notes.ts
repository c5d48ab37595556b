// SPDX-License-Identifier: Apache-2.0
// What the agent notes in a launch directory for an agent that comes after it: the time limit, and why it stops a job. Rule: a
// note is written before what it is about is done; one that is missing or damaged says nothing.

import fs from "node:fs";
import path from "node:path";
import type { StopReason } from "../protocol/job.ts";
import { fileFailure } from "../std/files.ts";

const REASONS: readonly StopReason[] = ["cancel", "time-limit", "output-limit", "release"];

export function inputFile(directory: string): string {
  return path.join(directory, "input.json");
}

/** Throws disk_full, directory_unwritable or root_unusable. */
export function writeInput(directory: string, input: unknown): void {
  writeNote(inputFile(directory), JSON.stringify(input ?? null));
}

export function writeTimeLimit(directory: string, limitMs: number | null): void {
  if (limitMs !== null) writeNote(path.join(directory, "time-limit"), String(limitMs));
}

export function readTimeLimit(directory: string): number | undefined {
  const text = readNote(path.join(directory, "time-limit"));
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

export function writeStopReason(directory: string, reason: StopReason): void {
  writeNote(path.join(directory, "stop-reason"), reason);
}

export function readStopReason(directory: string): StopReason | undefined {
  const text = readNote(path.join(directory, "stop-reason"));
  return REASONS.find((reason) => reason === text);
}

/** Not flushed: after a power cut nothing runs that the note could be about. */
function writeNote(file: string, text: string): void {
  try {
    fs.writeFileSync(file, text, { mode: 0o600 });
  } catch (error) {
    throw fileFailure(file, error);
  }
}

function readNote(file: string): string | undefined {
  try {
    return fs.readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}
