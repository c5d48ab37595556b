// SPDX-License-Identifier: Apache-2.0
// What a launch is for. Rule: one purpose has one launch id, and two purposes never have the same, because the exclusive
// creation of the directory of that name is what keeps a purpose from starting twice.

import type { Fault } from "../std/errors.ts";
import type { JobId } from "../std/ids.ts";
import { damaged, type Fields } from "./fields.ts";

/** With it the agent finds the way back from a directory. Epoch, position and generation are 64-bit counters as text. */
export type Purpose =
  /** One attempt of a queue job. */
  | { readonly kind: "attempt"; readonly jobId: JobId; readonly epoch: string }
  /** One position in the chain of a session: a signed job. */
  | { readonly kind: "signed"; readonly session: string; readonly position: string }
  /** One start of a model server of a scene. */
  | { readonly kind: "model"; readonly scene: string; readonly model: string; readonly generation: string };

export type PurposeKind = Purpose["kind"];

/** The parts of a launch id after its kind, by the names of their fields. The last one is the counter. */
function partsOf(purpose: Purpose): readonly (readonly [string, string])[] {
  switch (purpose.kind) {
    case "attempt":
      return [
        ["jobId", purpose.jobId],
        ["epoch", purpose.epoch],
      ];
    case "signed":
      return [
        ["session", purpose.session],
        ["position", purpose.position],
      ];
    case "model":
      return [
        ["scene", purpose.scene],
        ["model", purpose.model],
        ["generation", purpose.generation],
      ];
    default:
      return purpose satisfies never;
  }
}

/** The same purpose gives the same id, so that the exclusive creation of its directory fences a second start. */
export function launchIdOf(purpose: Purpose): string {
  return [purpose.kind, ...partsOf(purpose).map(([, part]) => part)].join("-");
}

/** A dash would let two purposes share an id; the lengths keep the id within a file name. */
export function purposeFaults(purpose: Purpose): readonly Fault[] {
  const parts = partsOf(purpose);
  return parts.flatMap(([name, part], index) => {
    const isCounter = index === parts.length - 1;
    if (isCounter ? /^(0|[1-9]\d{0,18})$/.test(part) : /^[A-Za-z0-9_]{1,64}$/.test(part)) return [];
    const problem = isCounter ? "is not a counter" : "is not 1 to 64 letters, digits and underscores";
    return [{ place: `purpose/${name}`, problem }];
  });
}

export function purposeOf(fields: Fields, place: string): Purpose {
  const kind = fields.text("kind");
  switch (kind) {
    case "attempt":
      return { kind, jobId: fields.text("jobId") as JobId, epoch: fields.counter("epoch") };
    case "signed":
      return { kind, session: fields.text("session"), position: fields.counter("position") };
    case "model":
      return {
        kind,
        scene: fields.text("scene"),
        model: fields.text("model"),
        generation: fields.counter("generation"),
      };
    default:
      throw damaged(place, `names an unknown purpose "${kind}"`);
  }
}

/** For people: "attempt 3 of job_…". */
export function describePurpose(purpose: Purpose): string {
  switch (purpose.kind) {
    case "attempt":
      return `epoch ${purpose.epoch} of ${purpose.jobId}`;
    case "signed":
      return `position ${purpose.position} of session ${purpose.session}`;
    case "model":
      return `${purpose.model} in scene ${purpose.scene}, generation ${purpose.generation}`;
    default:
      return purpose satisfies never;
  }
}
