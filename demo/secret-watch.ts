// SPDX-License-Identifier: Apache-2.0
// Looks for the secrets of a run where none may be: in the arguments of every process while it goes on, and at the end in
// every log and in every file of the run that other accounts may read.

import fs from "node:fs";
import path from "node:path";
import type { DemoWorld } from "./world.ts";

const LOOK_EVERY_MS = 5;
const FILE_BYTES_MAX = 32 * 2 ** 20;

export class SecretWatch {
  looks = 0;
  readonly #world: DemoWorld;
  readonly #found = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor(world: DemoWorld) {
    this.#world = world;
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  found(): readonly string[] {
    for (const file of this.#readable()) this.#search(fs.readFileSync(file, "latin1"), file);
    return [...this.#found];
  }

  #look(): void {
    this.looks++;
    for (const pid of fs.readdirSync("/proc")) {
      if (!/^\d+$/.test(pid)) continue;
      try {
        this.#search(fs.readFileSync(`/proc/${pid}/cmdline`, "latin1"), `the arguments of process ${pid}`);
      } catch {
        // It ended meanwhile.
      }
    }
  }

  /** A secret's base64 and its first characters count, too. */
  #search(text: string, place: string): void {
    for (const [what, secret] of this.#world.secrets) {
      const body = secret.slice(4);
      const forms = [secret, body.slice(0, 12), Buffer.from(secret).toString("base64").slice(0, 24)];
      if (forms.some((form) => text.includes(form))) this.#found.add(`${what} in ${place}`);
    }
  }

  /** Logs whoever may read them; other files when others may. */
  #readable(): readonly string[] {
    const files = fs.globSync("**/*", {
      cwd: this.#world.directory,
      withFileTypes: true,
      exclude: ["holdfast", "node"],
    });
    return files.flatMap((entry) => {
      const file = path.join(entry.parentPath, entry.name);
      const stat = fs.lstatSync(file, { throwIfNoEntry: false });
      if (stat === undefined || !stat.isFile() || stat.size > FILE_BYTES_MAX) return [];
      return file.endsWith(".log") || ((stat.mode & 0o004) !== 0 && isReachable(path.dirname(file))) ? [file] : [];
    });
  }
}

/** Whether another account may go through every directory on the way. */
function isReachable(directory: string): boolean {
  if (directory === path.dirname(directory)) return true;
  return (fs.statSync(directory).mode & 0o001) !== 0 && isReachable(path.dirname(directory));
}
