// SPDX-License-Identifier: Apache-2.0
// What a switch will do, pure: which models stay, stop and start, in which order, and what memory that takes; or every reason
// why it must not begin. Rules: nothing is stopped that the plan does not list; what cannot be proved ours is in the way.

import { sizeText } from "../std/units.ts";

/** A model of the target scene. */
export type Wanted = {
  readonly name: string;
  readonly spec: string;
  readonly port: number;
  /** Declared, or learned from earlier runs; undefined: not known. */
  readonly needBytes: number | undefined;
};

/** A model that the state knows. healthy: its very process answers with its very marker. */
export type Running = {
  readonly name: string;
  readonly spec: string | undefined;
  readonly port: number | undefined;
  readonly condition: "healthy" | "unhealthy" | "dead" | "legacy";
  /** For people: what is wrong. */
  readonly why: string;
  readonly usedBytes: number | undefined;
};

export type PlanInput = {
  readonly scene: string;
  readonly from: string | null;
  readonly wanted: readonly Wanted[];
  readonly running: readonly Running[];
  /** Ports that others hold, with words for who. */
  readonly strangers: ReadonlyMap<number, string>;
  readonly memory: { readonly availableBytes: number; readonly floorBytes: number };
};

export type Step =
  /** What is left of one that died is cleared away. */
  | { readonly kind: "forget"; readonly model: string }
  | { readonly kind: "hold"; readonly why: string }
  | { readonly kind: "stop"; readonly model: string }
  | { readonly kind: "start"; readonly model: string }
  /** The gateways lead to the target. */
  | { readonly kind: "flip" };

export type Memory = {
  readonly availableBytes: number;
  readonly floorBytes: number;
  /** What is given back by stops, as far as it is known. */
  readonly freedBytes: number;
  readonly neededBytes: number;
  /** Models whose need nobody knows. */
  readonly unknown: readonly string[];
};

export type Plan = {
  readonly scene: string;
  readonly from: string | null;
  readonly keep: readonly string[];
  readonly stop: readonly string[];
  readonly start: readonly string[];
  /** Died, and not part of the target. */
  readonly forget: readonly string[];
  /** The target is started and proved before anything is stopped. */
  readonly isMakeBeforeBreak: boolean;
  readonly steps: readonly Step[];
  readonly memory: Memory;
  /** Why it must not begin; none: it may. */
  readonly problems: readonly string[];
};

export function planSwitch(input: PlanInput): Plan {
  const { scene, from, wanted, running, memory } = input;
  const keep = wanted.filter((model) => isKept(model, running)).map(({ name }) => name);
  const start = wanted.filter(({ name }) => !keep.includes(name));
  const stop = running.filter(({ name, condition }) => condition !== "dead" && !keep.includes(name));
  const names = wanted.map(({ name }) => name);
  const forget = running.filter(({ name, condition }) => condition === "dead" && !names.includes(name));
  const sums: Memory = {
    ...memory,
    freedBytes: sum(stop.map(({ usedBytes }) => usedBytes)),
    neededBytes: sum(start.map(({ needBytes }) => needBytes)),
    unknown: start.filter(({ needBytes }) => needBytes === undefined).map(({ name }) => name),
  };
  const isMakeBeforeBreak = start.length > 0 && stop.length > 0 && mayOverlap(start, stop, sums);
  const stops = stop.map(({ name }): Step => ({ kind: "stop", model: name }));
  const starts = start.map(({ name }): Step => ({ kind: "start", model: name }));
  const hold: readonly Step[] =
    stop.length + start.length === 0 ? [] : [{ kind: "hold", why: `switching to ${scene}` }];
  const forgets = forget.map(({ name }): Step => ({ kind: "forget", model: name }));
  const steps: readonly Step[] = isMakeBeforeBreak
    ? [...forgets, ...starts, { kind: "flip" }, ...stops]
    : [...forgets, ...hold, ...stops, ...starts, { kind: "flip" }];
  return {
    scene,
    from,
    keep,
    stop: stop.map(({ name }) => name),
    start: start.map(({ name }) => name),
    forget: forget.map(({ name }) => name),
    isMakeBeforeBreak,
    steps,
    memory: sums,
    problems: problemsOf(input, start, stop, sums),
  };
}

function isKept(model: Wanted, running: readonly Running[]): boolean {
  return running.some(
    ({ name, spec, condition }) => name === model.name && spec === model.spec && condition === "healthy",
  );
}

function sum(amounts: readonly (number | undefined)[]): number {
  return amounts.reduce<number>((total, amount) => total + (amount ?? 0), 0);
}

/** Only when no port is needed twice and the memory of both is surely there. */
function mayOverlap(start: readonly Wanted[], stop: readonly Running[], memory: Memory): boolean {
  const ports = new Set(start.map(({ port }) => port));
  const names = new Set(start.map(({ name }) => name));
  if (stop.some(({ name, port }) => names.has(name) || port === undefined || ports.has(port))) return false;
  return memory.unknown.length === 0 && memory.neededBytes <= memory.availableBytes - memory.floorBytes;
}

function problemsOf(
  { strangers, running }: PlanInput,
  start: readonly Wanted[],
  stop: readonly Running[],
  memory: Memory,
): readonly string[] {
  const legacy = running
    .filter(({ condition }) => condition === "legacy")
    .map(({ name, why }) => `${name} may run, and nothing proves which process it is: ${why}; stop it yourself`);
  const freed = new Set(stop.map(({ port }) => port));
  const held = start.flatMap(({ name, port }) => {
    const holder = freed.has(port) ? undefined : strangers.get(port);
    return holder === undefined ? [] : [`port ${port} of ${name} is held by ${holder}`];
  });
  const short = memory.neededBytes - (memory.availableBytes - memory.floorBytes + memory.freedBytes);
  return [...legacy, ...held, ...(memory.neededBytes > 0 && short > 0 ? [shortOf(memory, short)] : [])];
}

function shortOf({ neededBytes, availableBytes, floorBytes, freedBytes }: Memory, short: number): string {
  const floor = floorBytes === 0 ? "" : ` less the floor of ${said(floorBytes)}`;
  const freed = freedBytes === 0 ? "" : ` and ${said(freedBytes)} that stops give back`;
  return `memory: ${said(neededBytes)} are needed, ${said(availableBytes)} are available${floor}${freed}: ${said(short)} are missing`;
}

/** Rounded for people, and exact: two sums that look alike may differ by a byte. */
function said(bytes: number): string {
  return `${sizeText(bytes)} (${bytes} bytes)`;
}
