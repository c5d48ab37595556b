// SPDX-License-Identifier: Apache-2.0
// A node's life with sessions in the simulator: admission, commit, burn and endings are the real functions, stored by the real
// locker; every change is computed from the live record, under its tenant's lock, before its gate opens.

import { admit, type Admission, enterNetwork, type StartFloor } from "../../src/boundary/admission.ts";
import { type BoundaryRecord, boundaryFormat, emptyRecord, storedIdentity } from "../../src/boundary/record.ts";
import { burnJob, closeJob, commitJob, type Committed, endJob } from "../../src/boundary/sessions.ts";
import { type Loaded, Locker, type SlotDisk, type Tenant } from "../../src/locker/locker.ts";
import { codeOf } from "../../src/std/errors.ts";
import type { CausalLog, Message } from "./causal-log.ts";
import type { Chance } from "./chance.ts";
import type { Variant } from "./run.ts";
import type { Life, Steps } from "./steps.ts";

export const TENANT = "boundary";

/** A position of a session, as it travels. turn: 0, or how often what stood there was burned. */
export type Task = { readonly session: SimulatedSession; readonly position: number; readonly turn: number };

export type SimulatedSession = {
  readonly number: number;
  readonly network: number;
  readonly start: Message;
};

export const networkId = (network: number): Uint8Array => new Uint8Array(16).fill(network + 1);

export function jobIdOf({ session, position, turn }: Task): Uint8Array {
  const id = new Uint8Array(32);
  id.set([session.number, position, turn, 1]);
  return id;
}

const identity = storedIdentity({ bootId: "b", pid: 77, startTicks: "5" });

export type SessionWorld = {
  readonly chance: Chance;
  readonly steps: Steps;
  readonly log: CausalLog;
  readonly variant: Variant | undefined;
  readonly onGate: (task: Task) => void;
};

export type Outcome = Admission["kind"] | Committed["kind"] | "store-failed";

export class SessionNode {
  readonly #world: SessionWorld;
  readonly #life: Life;
  readonly #network: number;
  readonly tenant: Tenant;
  #record: BoundaryRecord = emptyRecord;
  #floor: StartFloor | undefined;

  constructor(world: SessionWorld, life: Life, network: number, locker: Locker) {
    this.#world = world;
    this.#life = life;
    this.#network = network;
    this.tenant = locker.tenant(TENANT);
  }

  static locker(slots: readonly SlotDisk[], fingerprint: Uint8Array, chance: Chance): Locker {
    return new Locker({ slots, fingerprint, random: chance });
  }

  /** After the load, before anything is admitted. */
  enter(loaded: Loaded): void {
    if (loaded.kind === "adopted") this.#record = decode(loaded.record);
    const { log } = this.#world;
    const entry = enterNetwork(this.#record, networkId(this.#network), log.hasHistory(this.#network));
    if (entry.kind === "enter-above") this.#floor = { past: log.sayOwn(this.#network).hash };
  }

  /** One change of the live record; its answer is true once it is stored. */
  async #store<Answer>(
    change: (record: BoundaryRecord) => { readonly answer: Answer; readonly next: BoundaryRecord },
  ): Promise<Answer | "store-failed"> {
    let answer: Answer | "store-failed" = "store-failed";
    let stored: BoundaryRecord | undefined;
    try {
      await this.tenant.store((bytes) => {
        const record = bytes === undefined ? emptyRecord : decode(bytes);
        const changed = change(record);
        answer = changed.answer;
        stored = changed.next;
        return changed.next === record ? undefined : boundaryFormat.encode(changed.next);
      });
    } catch (error) {
      if (codeOf(error) !== "store_failed") throw error;
      return "store-failed";
    }
    if (stored !== undefined) this.#record = stored;
    return answer;
  }

  #asked({ session }: Task) {
    return { network: networkId(session.network), session: idOf(session), start: session.start.hash };
  }

  #rules({ session }: Task) {
    const { order } = this.#world.log;
    const isAboveFloor = this.#floor !== undefined && order(session.start.hash, this.#floor.past) === "dominates";
    return { order, isAboveFloor };
  }

  async run(task: Task): Promise<Outcome> {
    const { log, steps, onGate, chance } = this.#world;
    const outcome = await this.#store<Outcome>((record) => {
      const admission = admit(
        { boundary: { kind: "trusted", record }, floor: this.#floor, order: log.order },
        this.#asked(task),
      );
      if (admission.kind !== "admit") return { answer: admission.kind, next: record };
      const successor = jobIdOf({ ...task, position: task.position + 1, turn: 0 });
      const launchId = `s-${task.session.number}-${task.position}`;
      // What is not its first position cannot begin a session here: its chain shows that.
      if (admission.successor === undefined && task.position > 0 && !this.#isKnown(record, task))
        return { answer: "waits", next: record };
      const committed = commitJob(
        record,
        { ...this.#asked(task), job: jobIdOf(task), successor, launchId, identity },
        this.#rules(task),
      );
      return { answer: committed.kind, next: committed.kind === "committed" ? committed.record : record };
    });
    if (outcome === "session-hop") this.#floor = { past: log.sayOwn(this.#network).hash };
    if (outcome !== "committed") return outcome;
    await steps.effect(this.#life, "gate", () => onGate(task));
    if (chance.happens(0.5)) await this.#end(task);
    return outcome;
  }

  #isKnown(record: BoundaryRecord, task: Task): boolean {
    return record.sessions.some(({ session }) => Buffer.compare(session, idOf(task.session)) === 0);
  }

  async #end(task: Task): Promise<void> {
    await this.#store((record) => ({
      answer: true,
      next: endJob(record, idOf(task.session), jobIdOf(task), "exited"),
    }));
    await this.#store((record) => ({ answer: true, next: closeJob(record, idOf(task.session), jobIdOf(task)) }));
  }

  /** A session that is settled leaves, as it does for a new one when there are too many. */
  async forget(): Promise<void> {
    await this.#store((record) => {
      const leaving = record.sessions.find(({ entries }) => entries.length === 0);
      const sessions = record.sessions.filter((session) => session !== leaving);
      return { answer: true, next: leaving === undefined ? record : { ...record, sessions } };
    });
  }

  /** The owner of the session gives a position up; what takes its place may come. */
  async burn(task: Task): Promise<void> {
    const { log, steps, variant } = this.#world;
    const snapshot = this.#record;
    if (variant === "burned-from-snapshot") await steps.effect(this.#life, "think", () => {});
    await this.#store((live) => {
      const record = variant === "burned-from-snapshot" ? snapshot : live;
      const admission = admit(
        { boundary: { kind: "trusted", record: live }, floor: this.#floor, order: log.order },
        this.#asked(task),
      );
      if (admission.kind !== "admit" || !this.#isKnown(record, task)) return { answer: false, next: live };
      const successor = jobIdOf({ ...task, turn: task.turn + 1 });
      const burned = burnJob(record, { ...this.#asked(task), job: jobIdOf(task), successor }, this.#rules(task));
      return { answer: true, next: burned.kind === "committed" ? burned.record : live };
    });
  }
}

export function decode(bytes: Uint8Array): BoundaryRecord {
  const decoded = boundaryFormat.decode(bytes);
  if (decoded.kind !== "ok") throw new Error(`bug: the record does not decode: ${decoded.kind}`);
  return decoded.body;
}

function idOf({ number }: SimulatedSession): Uint8Array {
  const id = new Uint8Array(32);
  id.set([number, 2]);
  return id;
}
