// SPDX-License-Identifier: Apache-2.0
// The one writer of a node's scene state. Rule: what is in memory is what was written last; a change that could not be written
// did not happen.

import { Failure } from "../std/errors.ts";
import { type ModelRecord, readState, type SceneState, EMPTY_STATE, writeState } from "./state.ts";

/** Called around everything that lasts, so that a test can end the process at each of them. */
export type OnStep = (name: string) => Promise<void>;

export class SceneLedger {
  readonly #root: string;
  readonly #onStep: OnStep;
  #state: SceneState;
  #doubt: string | undefined;
  /** Neither file can be read: nothing is known. */
  readonly #isLost: boolean;

  constructor(root: string, onStep: OnStep) {
    this.#root = root;
    this.#onStep = onStep;
    const read = readState(root);
    this.#doubt = read.kind === "fallback" || read.kind === "unreadable" ? read.why : undefined;
    this.#isLost = read.kind === "unreadable";
    this.#state = read.kind === "read" || read.kind === "fallback" ? read.state : EMPTY_STATE;
  }

  /** Why the file could not be read; what is here is what the one before it said. */
  get doubt(): string | undefined {
    return this.#doubt;
  }

  /** A person has said which scene it is to be: what is written from now on is known again. */
  settleDoubt(): void {
    this.#doubt = undefined;
  }

  /** Where nothing is known nothing is changed. Throws scene_refused. */
  refuseLost(): void {
    if (!this.#isLost || this.#doubt === undefined) return;
    const advice = "look at what runs (holdfast launch list), then move both away and adopt the scene that runs";
    throw new Failure("scene_refused", `${this.#doubt}, and there is no good copy: ${advice}`);
  }

  /** What an older version says may not be what runs now. Throws scene_refused. */
  refuseDoubt(): void {
    this.refuseLost();
    if (this.#doubt === undefined) return;
    const advice = "what the version before it says may be older than what runs: activate or adopt a scene first";
    throw new Failure("scene_refused", `${this.#doubt}; ${advice}`);
  }

  get state(): SceneState {
    return this.#state;
  }

  /** change: of the state as it is at the moment of the write. */
  async write(change: Partial<SceneState> | ((state: SceneState) => Partial<SceneState>)): Promise<void> {
    await this.#onStep("before a write of the state");
    const next = { ...this.#state, ...(typeof change === "function" ? change(this.#state) : change) };
    writeState(this.#root, next);
    this.#state = next;
    await this.#onStep("after a write of the state");
  }

  /** undefined: it leaves. */
  setModel(name: string, record: ModelRecord | undefined): Promise<void> {
    return this.write(({ models: before }) => {
      const models = new Map(before);
      if (record === undefined) models.delete(name);
      else models.set(name, record);
      return { models };
    });
  }

  async nextGeneration(): Promise<number> {
    let generation = 0;
    await this.write((state) => {
      generation = state.generation + 1;
      return { generation };
    });
    return generation;
  }
}
