// SPDX-License-Identifier: Apache-2.0
// What models needed in earlier runs: the peak of their memory, by the hash of their spec. Safe to lose.

import fs from "node:fs";
import path from "node:path";
import { stateDirectory } from "./state.ts";

const ENTRIES_MAX = 500;

export class LearnedNeeds {
  readonly #file: string;
  readonly #peaks: Map<string, number>;

  constructor(root: string) {
    this.#file = path.join(stateDirectory(root), "learned.json");
    this.#peaks = read(this.#file);
  }

  /** Spec to bytes. */
  get needs(): ReadonlyMap<string, number> {
    return this.#peaks;
  }

  note(spec: string, bytes: number): void {
    if (bytes <= (this.#peaks.get(spec) ?? 0)) return;
    this.#peaks.delete(spec);
    this.#peaks.set(spec, bytes);
    for (const oldest of [...this.#peaks.keys()].slice(0, Math.max(0, this.#peaks.size - ENTRIES_MAX)))
      this.#peaks.delete(oldest);
    try {
      fs.writeFileSync(`${this.#file}.new`, JSON.stringify(Object.fromEntries(this.#peaks)), { mode: 0o600 });
      fs.renameSync(`${this.#file}.new`, this.#file);
    } catch {
      // A need that could not be kept is learned again.
    }
  }
}

function read(file: string): Map<string, number> {
  try {
    const value: unknown = JSON.parse(fs.readFileSync(file, "utf8"));
    const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
    return new Map(entries.filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])));
  } catch {
    return new Map();
  }
}
