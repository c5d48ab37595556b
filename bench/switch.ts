// SPDX-License-Identifier: Apache-2.0
// One switch between two scenes of two tiny models each, from the wish to four exact markers behind a gateway, beside the floor:
// the same two servers spawned and asked in a bare loop. Interleaved rounds of one run.

import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { stringify } from "yaml";
import { openScenes } from "../src/bin/scene.ts";
import type { Emit } from "../src/scenes/events.ts";
import { defaultMarker, probeMarker } from "../src/std/marker.ts";
import { freePort, stubModel } from "../tests/kit/stub-model.ts";
import type { Measure } from "./boundary.ts";

export type SwitchOptions = { readonly directory: string; readonly rounds: number };

const job = { emit: () => {}, signal: new AbortController().signal };
const POLL_MS = 2;
const PROBE_TIMEOUT_MS = 5_000;

type Stub = { readonly name: string; readonly port: number };

export async function benchSwitch({ directory, rounds }: SwitchOptions): Promise<readonly Measure[]> {
  const listen = `127.0.0.1:${await freePort()}`;
  const together: number[] = [];
  const inPlace: number[] = [];
  const floor: number[] = [];
  const [a, b] = [await stubs("a"), await stubs("b")];
  // The same ports: what stops must be gone before what starts.
  const c = a.map(({ port }, index): Stub => ({ name: `c${index}`, port }));
  writeScenes(directory, listen, { a, b, c });
  await using opened = await openScenes({ root: directory, env: process.env });
  const { scenes } = opened.context;
  const verified: number[] = [];
  /** whole: until the former models are gone, too. */
  const timed = async (whole: number[], name: string, proved: number[] = []): Promise<void> => {
    const began = performance.now();
    let at = 0;
    const emit: Emit = (event) => {
      if (event.kind === "model" && event.phase === "healthy") at = performance.now() - began;
    };
    await scenes.activate(name, { ...job, emit });
    whole.push(performance.now() - began);
    proved.push(at);
  };
  await scenes.activate("a", job);
  // The first round warms up and does not count.
  for (let round = 0; round <= rounds; round++) {
    const counts = round > 0;
    await timed(counts ? together : [], "b", counts ? verified : []);
    await timed(counts ? inPlace : [], "a");
    await timed(counts ? inPlace : [], "c");
    await scenes.activate("b", job);
    const bare = await bareStart(c);
    if (counts) floor.push(bare);
    await scenes.activate("a", job);
  }
  await scenes.stop(job);
  await scenes.closeGateways();
  const floorMs = median(floor);
  return [
    row("both at once: from the wish to both markers", median(verified), floorMs, "≤ 70 ms"),
    row("both at once: until the former scene is gone, too", median(together), floorMs, ""),
    row("on the same ports: stop, start, both markers, committed", median(inPlace), floorMs, ""),
  ];
}

function row(measure: string, us: number, floor: number, goal: string): Measure {
  const rounded = (value: number): number => Math.round(value * 10) / 10;
  const ratio = Math.round((us / floor) * 100) / 100;
  return {
    measure,
    unit: "ms",
    us: rounded(us),
    peers: { floor: rounded(floor) },
    ratio,
    goal,
    met: goal === "" || us <= 70,
  };
}

async function stubs(prefix: string): Promise<readonly Stub[]> {
  return [
    { name: `${prefix}0`, port: await freePort() },
    { name: `${prefix}1`, port: await freePort() },
  ];
}

function writeScenes(directory: string, listen: string, scenes: { readonly [name: string]: readonly Stub[] }): void {
  const models = Object.values(scenes)
    .flat()
    .map(
      ({ name, port }) =>
        [name, { argv: stubModel({ port, alias: name }), port, marker: name, memory: "64MiB" }] as const,
    );
  const file = {
    version: 1,
    gateways: { main: { listen, drain: "1s" } },
    models: Object.fromEntries(models),
    scenes: Object.fromEntries(
      Object.entries(scenes).map(([name, all]) => [
        name,
        { models: all.map((stub) => stub.name), gateways: { main: all[0]?.name ?? "" } },
      ]),
    ),
  };
  fs.writeFileSync(path.join(directory, "scenes.yaml"), stringify(file));
}

/** From spawn to both markers, with nothing in between. */
async function bareStart(all: readonly Stub[]): Promise<number> {
  const began = performance.now();
  const children = all.map(({ name, port }) => {
    const [program = "", ...args] = stubModel({ port, alias: name });
    return spawn(program, args, { stdio: "ignore" });
  });
  await Promise.all(all.map(ready));
  const tookMs = performance.now() - began;
  for (const child of children) {
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }
  return tookMs;
}

async function ready({ name, port }: Stub): Promise<void> {
  const place = { host: "127.0.0.1", port };
  while ((await probeMarker(place, defaultMarker(name), PROBE_TIMEOUT_MS)).kind !== "equal")
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

function median(times: readonly number[]): number {
  return times.toSorted((x, y) => x - y)[Math.floor(times.length / 2)] ?? Number.NaN;
}
