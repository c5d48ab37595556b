// SPDX-License-Identifier: Apache-2.0
// Registered models and projects.

import { exact, id, page } from "../common-schema.ts";

import { model, modelRegistration, project, projectRegistration } from "../registry-schema.ts";
import { defineRoute } from "../route.ts";
import { read, write } from "./access.ts";

export const registryRoutes = {
  modelAdd: defineRoute({
    method: "POST",
    path: "/v1/models",
    summary: "Register a model with its needs and its marker",
    access: write,
    body: modelRegistration,
    status: 201,
    reply: model,
    errors: ["conflict"],
  }),
  modelList: defineRoute({
    method: "GET",
    path: "/v1/models",
    summary: "Registered models, retired ones last",
    access: read,
    reply: page(model),
    errors: [],
  }),
  modelRetire: defineRoute({
    method: "POST",
    path: "/v1/models/:modelId/retire",
    summary: "Take no new job that asks for this model; its name is free again",
    access: write,
    params: exact({ modelId: id("model") }),
    reply: model,
    errors: ["not_found", "conflict"],
  }),
  projectAdd: defineRoute({
    method: "POST",
    path: "/v1/projects",
    summary: "Register a project",
    access: write,
    body: projectRegistration,
    status: 201,
    reply: project,
    errors: ["conflict"],
  }),
  projectList: defineRoute({
    method: "GET",
    path: "/v1/projects",
    summary: "Registered projects, retired ones last",
    access: read,
    reply: page(project),
    errors: [],
  }),
  projectRetire: defineRoute({
    method: "POST",
    path: "/v1/projects/:projectId/retire",
    summary: "Take no new job of this project; its name is free again",
    access: write,
    params: exact({ projectId: id("proj") }),
    reply: project,
    errors: ["not_found", "conflict"],
  }),
} as const;
