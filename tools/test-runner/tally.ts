// SPDX-License-Identifier: Apache-2.0
// Turns the events of one test file into results of its leaf tests. Rule: whatever is not a test that ran and passed is a
// failure: a skipped one, a hook, a file that crashed, ended early or holds no test.

import type { EventData } from "node:test";
import { inspect } from "node:util";

export type Result = {
  /** The names from the outermost suite inwards. */
  readonly name: string;
  readonly isPassed: boolean;
  readonly durationMs: number;
  /** Why it failed, several lines. */
  readonly error?: string;
};

export type FileResult = {
  readonly file: string;
  readonly results: readonly Result[];
  readonly durationMs: number;
  /** What it wrote, newest last, bounded. */
  readonly output: string;
};

type Ended = EventData.TestPass | EventData.TestFail;

/** What node:test tells about one file; the rest of its events say nothing that counts here. */
export type TestEvent =
  | { readonly type: "test:start"; readonly data: EventData.TestStart }
  | { readonly type: "test:pass"; readonly data: EventData.TestPass }
  | { readonly type: "test:fail"; readonly data: EventData.TestFail }
  | { readonly type: "test:stdout"; readonly data: EventData.TestStdout }
  | { readonly type: "test:stderr"; readonly data: EventData.TestStderr }
  | { readonly type: "test:summary"; readonly data: EventData.TestSummary };

const OUTPUT_CHARACTERS_MAX = 20_000;

export class Tally {
  readonly #file: string;
  readonly #path: string;
  readonly #mayBeEmpty: boolean;
  readonly #results: Result[] = [];
  readonly #names: string[] = [];
  /** By depth: whether anything ended at that depth since the last end above it, so that the one above is no leaf. */
  readonly #hasEnded: boolean[] = [];
  #output = "";
  #isComplete = false;

  constructor(options: { readonly file: string; readonly path: string; readonly mayBeEmpty: boolean }) {
    this.#file = options.file;
    this.#path = options.path;
    this.#mayBeEmpty = options.mayBeEmpty;
  }

  add(event: TestEvent): void {
    switch (event.type) {
      case "test:start":
        this.#names[event.data.nesting] = event.data.name;
        break;
      case "test:pass":
      case "test:fail":
        this.#end(event.data, event.type === "test:pass");
        break;
      case "test:stdout":
      case "test:stderr":
        this.#output = (this.#output + event.data.message).slice(-OUTPUT_CHARACTERS_MAX);
        break;
      case "test:summary":
        if (event.data.file !== undefined) this.#isComplete = true;
    }
  }

  fail(name: string, error: string): void {
    this.#results.push({ name, isPassed: false, durationMs: 0, error });
  }

  finish(durationMs: number): FileResult {
    if (!this.#isComplete) this.fail("the file itself", "it ended before all of its tests did");
    else if (this.#results.length === 0 && !this.#mayBeEmpty) this.fail("the file itself", "it holds no test");
    return { file: this.#file, results: this.#results, durationMs, output: this.#output };
  }

  #end(data: Ended, isPass: boolean): void {
    const { nesting, details } = data;
    const isLeaf = this.#hasEnded[nesting + 1] !== true && details.type !== "suite";
    this.#hasEnded[nesting + 1] = false;
    if (nesting === 0 && data.name === this.#path) return this.#endFile(data, isPass);
    this.#hasEnded[nesting] = true;
    const name = [...this.#names.slice(0, nesting), data.name].join(" > ");
    const durationMs = details.duration_ms;
    if (isPass) {
      const isLeftOut = data.skip !== undefined || data.todo !== undefined;
      if (isLeftOut)
        this.#results.push({
          name,
          isPassed: false,
          durationMs,
          error: "it was skipped; a skipped test counts as failed",
        });
      else if (isLeaf) this.#results.push({ name, isPassed: true, durationMs });
      return;
    }
    const error = "error" in details ? details.error : undefined;
    // What failed inside is already here under its own name.
    if (isSubtestFailure(error)) return;
    this.#results.push({ name, isPassed: false, durationMs, error: textOf(error) });
  }

  /** node:test reports a file as a test of its own when it crashed, or when it held none. */
  #endFile(data: Ended, isPass: boolean): void {
    this.#isComplete = true;
    if (isPass) return;
    const error = "error" in data.details ? data.details.error : undefined;
    const { exitCode, signal } = (error ?? {}) as { exitCode?: unknown; signal?: unknown };
    this.fail(
      "the file itself",
      `it ended with exit code ${String(exitCode)}, signal ${String(signal)}: ${textOf(error)}`,
    );
  }
}

function isSubtestFailure(error: unknown): boolean {
  return (
    typeof error === "object" && error !== null && "failureType" in error && error.failureType === "subtestsFailed"
  );
}

function textOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return typeof cause === "string" ? cause : inspect(cause, { colors: false, depth: 6 });
}
