// SPDX-License-Identifier: Apache-2.0
// Every effect of a simulated program is a step that waits here until the simulator picks it: so the order of what runs side
// by side, and the step at which a life ends, are chosen by the seed. A life that has ended never hears of its effects again.

import type { Chance } from "./chance.ts";

/** One life of a process. */
export type Life = { isOver: boolean };

/**
 * What goes wrong at a step: the process dies before or after the effect, the power fails before or after it, or the system
 * call fails, before or after it had its effect.
 */
export type Mishap =
  | { readonly kind: "kill" | "power"; readonly isAfter: boolean }
  | { readonly kind: "error"; readonly code: "EIO" | "ENOSPC"; readonly isAfter: boolean };

type Step = {
  readonly name: string;
  readonly life: Life;
  /** A disk may refuse it. */
  readonly mayFail: boolean;
  readonly run: (mishap: Mishap | undefined) => void;
};

export type StepsOptions = {
  readonly chance: Chance;
  /** Asked for each step, with its number from 1. */
  readonly mishapAt: (number: number, mayFail: boolean) => Mishap | undefined;
  /** Ends the life: of the process, or of the whole machine. */
  readonly end: (kind: "kill" | "power") => void;
};

export class Steps {
  readonly #options: StepsOptions;
  #waiting: Step[] = [];
  /** How many were taken. */
  count = 0;
  /** The last ones, for a report. */
  readonly trail: string[] = [];

  constructor(options: StepsOptions) {
    this.#options = options;
  }

  /** Resolves with the effect's result once the simulator has picked it. */
  effect<Result>(life: Life, name: string, act: () => Result, mayFail = false): Promise<Result> {
    if (life.isOver) return new Promise(() => {});
    return new Promise((resolve, reject) => {
      const run = (mishap: Mishap | undefined): void => {
        const { end } = this.#options;
        if (mishap === undefined) return settle(act, resolve, reject);
        if (mishap.isAfter) act();
        if (mishap.kind !== "error") end(mishap.kind);
        else reject(Object.assign(new Error(`simulated ${mishap.code}: ${name}`), { code: mishap.code }));
      };
      this.#waiting.push({ name, life, mayFail, run });
    });
  }

  /** Takes one step of those that wait; false when there is none. Afterwards all that follows from it has run. */
  async next(): Promise<boolean> {
    this.#waiting = this.#waiting.filter(({ life }) => !life.isOver);
    if (this.#waiting.length === 0) return false;
    const [step] = this.#waiting.splice(this.#options.chance.below(this.#waiting.length), 1);
    if (step === undefined) return false;
    this.count++;
    const mishap = this.#options.mishapAt(this.count, step.mayFail);
    this.note(mishap === undefined ? step.name : `${step.name} (${describe(mishap)})`);
    step.run(mishap);
    await settled();
    return true;
  }

  note(text: string): void {
    this.trail.push(text);
    if (this.trail.length > 80) this.trail.shift();
  }
}

function settle<Result>(act: () => Result, resolve: (result: Result) => void, reject: (error: unknown) => void): void {
  try {
    resolve(act());
  } catch (error) {
    reject(error);
  }
}

function describe(mishap: Mishap): string {
  return `${mishap.kind === "error" ? mishap.code : mishap.kind} ${mishap.isAfter ? "after" : "before"}`;
}

/** Until everything that promises made runnable has run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
