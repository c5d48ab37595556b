// SPDX-License-Identifier: Apache-2.0
// One life of a locker over simulated disks whose steps are taken in order, and what its slots hold.

import { type Envelope, openEnvelope } from "../../src/locker/envelope.ts";
import { Locker, type Tenant } from "../../src/locker/locker.ts";
import { Chance } from "../sim/chance.ts";
import { SimulatedDisk } from "../sim/disk.ts";
import { type Life, type Mishap, settled, Steps } from "../sim/steps.ts";

export const NAME = "tenant";
export const fingerprint: Uint8Array = new Uint8Array(32).fill(7);

export type Machine = {
  readonly disks: readonly SimulatedDisk[];
  readonly chance: Chance;
  /** A new life on these disks. */
  readonly live: () => LockerLife;
};

export type LockerLife = {
  readonly tenant: Tenant;
  readonly steps: Steps;
  readonly life: Life;
  /** The mishap of the next step that a disk may refuse. */
  readonly mishaps: Map<number, Mishap>;
  /** Takes steps until the work is done; the work hangs when the life ends. */
  readonly drive: <Result>(work: Promise<Result>) => Promise<Result | "life over">;
};

export function machine(slots: number, seed = 1): Machine {
  const chance = new Chance(seed);
  const disks = Array.from({ length: slots }, (_, index) => new SimulatedDisk(`slot-${index}`, chance));
  const live = (): LockerLife => {
    const life: Life = { isOver: false };
    const mishaps = new Map<number, Mishap>();
    const end = (kind: "kill" | "power"): void => {
      life.isOver = true;
      if (kind === "power") for (const disk of disks) disk.cutPower();
    };
    const steps = new Steps({ chance, mishapAt: (number) => mishaps.get(number), end });
    const own = disks.map((disk) => disk.slotOf(life, steps));
    const tenant = new Locker({ slots: own, fingerprint, random: chance }).tenant(NAME);
    const drive = async <Result>(work: Promise<Result>): Promise<Result | "life over"> => {
      const state = { isDone: false };
      const done = work.finally(() => (state.isDone = true));
      done.catch(() => {});
      await settled();
      while (!state.isDone && !life.isOver)
        if (!(await steps.next())) throw new Error("nothing is left to do, and the work is not done");
      return life.isOver && !state.isDone ? "life over" : done;
    };
    return { tenant, steps, life, mishaps, drive };
  };
  return { disks, chance, live };
}

/** What a slot holds, as programs see it. */
export function envelopeIn(disk: SimulatedDisk): Envelope | undefined {
  const reading = disk.read(NAME);
  if (reading.kind !== "bytes") return undefined;
  const opened = openEnvelope(reading.bytes);
  return opened.kind === "envelope" ? opened.envelope : undefined;
}

export const textOf = (record: Uint8Array | undefined): string => Buffer.from(record ?? []).toString();
export const append =
  (text: string) =>
  (record: Uint8Array | undefined): Uint8Array =>
    Buffer.from(textOf(record) + text);
