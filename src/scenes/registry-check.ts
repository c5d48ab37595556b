// SPDX-License-Identifier: Apache-2.0
// What no schema can say about scenes.yaml: names that exist, ports and addresses that do not meet, markers that tell two models
// apart. Pure.

import type { ScenesFile } from "../protocol/scenes-file-schema.ts";
import type { Fault } from "../std/errors.ts";
import { durationMsOf, sizeOf } from "../std/units.ts";
import { type Model, markerHash } from "./model.ts";
import type { SceneText } from "./scene-text.ts";

export function checkScenes(
  written: ScenesFile,
  models: ReadonlyMap<string, Model>,
  text: SceneText,
): readonly Fault[] {
  return [
    ...sharedMarkers(models, text),
    ...Object.keys(written.scenes).flatMap((scene) => sceneFaults(written, scene, text)),
    ...addressFaults(written, text),
    ...amountFaults(written, text),
  ];
}

/** What is written as an amount and is none must not become a default in silence. */
function amountFaults({ floor, models, gateways = {} }: ScenesFile, text: SceneText): readonly Fault[] {
  const faults: Fault[] = [];
  const look = (
    steps: readonly string[],
    amount: string | undefined,
    of: "size" | "time" | "time above zero",
  ): void => {
    if (amount === undefined) return;
    const read = of === "size" ? sizeOf(amount) : waitMsOf(amount);
    if (read === undefined || (of === "time above zero" && read === 0))
      faults.push({ place: text.place(steps), problem: `${amount} is no ${of} that can be used` });
  };
  look(["floor"], floor, "size");
  for (const [name, model] of Object.entries(models)) {
    look(["models", name, "memory"], model.memory, "size");
    look(["models", name, "start_timeout"], model.start_timeout, "time above zero");
    look(["models", name, "stall_timeout"], model.stall_timeout, "time above zero");
    look(["models", name, "stop_grace"], model.stop_grace, "time");
  }
  for (const [name, { drain }] of Object.entries(gateways)) look(["gateways", name, "drain"], drain, "time");
  return faults;
}

/** 0s is no wait at all. */
export function waitMsOf(text: string): number | undefined {
  return /^[0.]+\s*(ms|s|m|h|d)$/.test(text) ? 0 : durationMsOf(text);
}

function sharedMarkers(models: ReadonlyMap<string, Model>, text: SceneText): readonly Fault[] {
  const first = new Map<string, string>();
  return [...models].flatMap(([name, { marker }]) => {
    const hash = markerHash(marker);
    const other = first.get(hash);
    if (other === undefined) {
      first.set(hash, name);
      return [];
    }
    const problem = `has the marker of ${other}: nobody could tell which of both answers`;
    return [{ place: text.place(["models", name, "marker"]), problem: `${name} ${problem}` }];
  });
}

function sceneFaults({ scenes, models, gateways = {} }: ScenesFile, name: string, text: SceneText): readonly Fault[] {
  const scene = scenes[name];
  if (scene === undefined) return [];
  const faults: Fault[] = [];
  const byPort = new Map<number, string>();
  for (const [index, model] of scene.models.entries()) {
    const place = text.place(["scenes", name, "models", index]);
    const { port } = models[model] ?? {};
    if (port === undefined) {
      faults.push({ place, problem: `there is no model ${model}` });
      continue;
    }
    const other = byPort.get(port);
    if (other === undefined) byPort.set(port, model);
    else faults.push({ place, problem: `${model} has port ${port}, which ${other} has in the same scene` });
  }
  for (const [gateway, model] of Object.entries(scene.gateways ?? {})) {
    const place = text.place(["scenes", name, "gateways", gateway]);
    if (!Object.hasOwn(gateways, gateway)) faults.push({ place, problem: `there is no gateway ${gateway}` });
    if (!scene.models.includes(model)) faults.push({ place, problem: `scene ${name} has no model ${model}` });
  }
  return faults;
}

function addressFaults({ models, gateways = {} }: ScenesFile, text: SceneText): readonly Fault[] {
  const faults: Fault[] = [];
  const byPort = new Map<number, string>();
  for (const [name, { listen }] of Object.entries(gateways)) {
    const place = text.place(["gateways", name, "listen"]);
    const port = Number(/(\d+)$/.exec(listen)?.[1]);
    if (port < 1 || port > 65_535) faults.push({ place, problem: `${port} is not a port` });
    const other = byPort.get(port);
    if (other !== undefined) faults.push({ place, problem: `${name} has port ${port}, which gateway ${other} has` });
    byPort.set(port, name);
  }
  for (const [name, { port }] of Object.entries(models)) {
    const gateway = byPort.get(port);
    if (gateway !== undefined)
      faults.push({
        place: text.place(["models", name, "port"]),
        problem: `${port} is the port of gateway ${gateway}`,
      });
  }
  return faults;
}
