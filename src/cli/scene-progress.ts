// SPDX-License-Identifier: Apache-2.0
// A switch as it goes on: on a terminal one line a model that is drawn again, elsewhere a plain line for each change.

import type { ModelPhase, SceneEvent } from "../scenes/events.ts";
import { visible } from "./table.ts";
import { colours, type Terminal } from "./terminal.ts";

type Row = { readonly phase: ModelPhase; readonly text: string; readonly ms: number };

export class SceneProgress implements Disposable {
  readonly #terminal: Terminal;
  readonly #isSilent: boolean;
  readonly #rows = new Map<string, Row>();
  #drawn = 0;

  constructor(terminal: Terminal, isSilent: boolean) {
    this.#terminal = terminal;
    this.#isSilent = isSilent;
  }

  show(event: SceneEvent): void {
    if (this.#isSilent) return;
    const isTerminal = this.#terminal.stderr.isTTY === true;
    if (event.kind === "note") {
      this.#erase();
      this.#terminal.stderr.write(`  ${visible(event.text)}\n`);
    } else {
      const { model, phase, text, ms } = event;
      const before = this.#rows.get(model);
      this.#rows.set(model, { phase, text, ms });
      // A rung that only says the same again is no line of its own.
      if (!isTerminal && (before?.phase !== phase || phase === "failed"))
        this.#terminal.stderr.write(`  ${lineOf(model, { phase, text, ms })}\n`);
    }
    if (isTerminal) this.#draw();
  }

  #draw(): void {
    this.#erase();
    const paint = colours(this.#terminal, "stderr");
    const colour = { healthy: paint.green, kept: paint.green, failed: paint.red, stopped: paint.dim } as const;
    const width = 100;
    for (const [model, row] of this.#rows) {
      const line = lineOf(model, row).slice(0, width);
      const painted = row.phase in colour ? colour[row.phase as keyof typeof colour](line) : line;
      this.#terminal.stderr.write(`  ${painted}\n`);
    }
    this.#drawn = this.#rows.size;
  }

  /** Up over what was drawn, and clear from there. */
  #erase(): void {
    if (this.#drawn > 0) this.#terminal.stderr.write(`\u001b[${this.#drawn}A\u001b[J`);
    this.#drawn = 0;
  }

  [Symbol.dispose](): void {
    this.#drawn = 0;
  }
}

function lineOf(model: string, { phase, text, ms }: Row): string {
  return `${model.padEnd(20)} ${phase.padEnd(9)} ${`${(ms / 1000).toFixed(1)} s`.padStart(8)}  ${visible(text)}`.trimEnd();
}
