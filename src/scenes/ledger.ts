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
  /** Why the file could not be read; what is here is what the one before it said. */
  readonly doubt: string | undefined;
  /** Neither file can be read: nothing is known. */
  readonly isLost: boolean;

  constructor(root: string, onStep: OnStep) {
    this.#root = root;
    this.#onStep = onStep;
    const read = readState(root);
    this.doubt = read.kind === "fallback" || read.kind === "unreadable" ? read.why : undefined;
    this.isLost = read.kind === "unreadable";
    this.#state = read.kind === "read" || read.kind === "fallback" ? read.state : EMPTY_STATE;
  }

  /** Where nothing is known nothing is changed. Throws scene_refused. */
  refuseLost(): void {
    if (!this.isLost) return;
    const advice = "look at what runs (holdfast launch list), then move the file away";
    throw new Failure("scene_refused", `${this.doubt}, and there is no good copy: ${advice}`);
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
