// SPDX-License-Identifier: Apache-2.0
// The steps of `holdfast up` as lines on a terminal: what is being done, how long it took, what came of it.

import { styleText } from "node:util";
import type { Clock } from "../std/clock.ts";

type Output = { write(text: string): unknown; readonly isTTY?: boolean };

export class Steps {
  readonly #output: Output;
  readonly #clock: Clock;
  #pending: { label: string; tookMs: number } | undefined;

  constructor(output: Output, clock: Clock) {
    this.#output = output;
    this.#clock = clock;
  }

  title(text: string): void {
    this.line(this.#style("bold", text));
    this.line();
  }

  line(text = ""): void {
    this.#flush("");
    this.#output.write(`${text}\n`);
  }

  /** A line of something else's output, set off from ours. */
  quote(text: string): void {
    this.line(`    ${this.#style("dim", "│")} ${text}`);
  }

  /** Text that comes piece by piece, on one line that is set off. Returns what ends the line. */
  stream(head: string): { readonly add: (piece: string) => void; readonly end: () => void } {
    this.#flush("");
    this.#output.write(`    ${this.#style("dim", "│")} ${this.#style("bold", head)} `);
    return { add: (piece) => void this.#output.write(piece), end: () => void this.#output.write("\n") };
  }

  async run<Result>(label: string, work: () => Promise<Result>): Promise<Result> {
    this.#flush("");
    const began = this.#clock.monotonicMs();
    const result = await work();
    this.#pending = { label, tookMs: this.#clock.monotonicMs() - began };
    return result;
  }

  /** Completes the line of the step that has just run. */
  note(text: string): void {
    this.#flush(text);
  }

  #flush(text: string): void {
    if (this.#pending === undefined) return;
    const { label, tookMs } = this.#pending;
    this.#pending = undefined;
    const seconds = this.#style("dim", `${(tookMs / 1000).toFixed(1)} s`);
    this.#output.write(`  ${this.#style("green", "✓")} ${label.padEnd(11)} ${text}  ${seconds}\n`);
  }

  #style(format: "bold" | "dim" | "green", text: string): string {
    return this.#output.isTTY === true && process.env["NO_COLOR"] === undefined ? styleText(format, text) : text;
  }
}
