// SPDX-License-Identifier: Apache-2.0
// What no schema can say about scenes.yaml: names that exist, ports and addresses that do not meet, markers that tell two models
// apart. Pure.

import type { ScenesFile } from "../protocol/scenes-file-schema.ts";
import type { Fault } from "../std/errors.ts";
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
  ];
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
