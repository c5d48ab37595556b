// SPDX-License-Identifier: Apache-2.0
// What crosses HTTP about registered models and projects. Neither is deleted: jobs refer to them; a retired one takes no new job.

import Type, { type Static } from "typebox";
import { exact, id, name, nullable, time } from "./common-schema.ts";
import { needs } from "./placement-schema.ts";

const description = Type.String({ maxLength: 1024 });

export const modelNeeds = needs;
export type ModelNeeds = Static<typeof modelNeeds>;

export const model = exact({
  id: id("model"),
  name,
  needs: modelNeeds,
  /** What only this model's server answers: the proof that it is this model and no other. */
  marker: nullable(Type.String({ minLength: 1, maxLength: 256 })),
  description,
  createdAt: time,
  retiredAt: nullable(time),
});
export type Model = Static<typeof model>;

export const modelRegistration = exact({
  name,
  needs: Type.Optional(modelNeeds),
  marker: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  description: Type.Optional(description),
});

export const project = exact({
  id: id("proj"),
  name,
  description,
  createdAt: time,
  retiredAt: nullable(time),
  /** Jobs of it that have not ended. */
  openJobs: Type.Integer({ minimum: 0 }),
});
export type Project = Static<typeof project>;

export const projectRegistration = exact({ name, description: Type.Optional(description) });
